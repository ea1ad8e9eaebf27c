package meter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/meter"
	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// metered is a gate in front of the stand-in of an API whose prices are known after the call.
type metered struct {
	*meter.Transport
	standin *standin.Server
	server  *httptest.Server
	log     *metertest.Log
}

// openMetered opens one on a ledger in SQLite.
func openMetered(t testing.TB, name string, limits ...quota.Limit) *metered {
	t.Helper()
	return onLedger(t, name, metertest.File(t), limits...)
}

func onLedger(t testing.TB, name string, ledger quota.BudgetLedger, limits ...quota.Limit) *metered {
	t.Helper()
	api, err := standin.New(name)
	must(t, err)
	api.Keys = []string{canary}
	api.Limits = map[string][]standin.Limit{}
	for _, bucket := range []string{"requests", "tokens", "input", "output"} {
		if api.Limits[bucket] = nil; api.Check() != nil {
			delete(api.Limits, bucket)
		}
	}
	m := &metered{standin: api, log: new(metertest.Log)}
	m.server = httptest.NewServer(api)
	t.Cleanup(m.server.Close)
	table, err := costs.Shipped().Upstream(name)
	must(t, err)
	m.gate(t, table, ledger, limits)
	return m
}

// gate puts a new gate before the stand-in.
func (m *metered) gate(t testing.TB, table *costs.Table, ledger quota.BudgetLedger,
	limits []quota.Limit) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(m.log, nil))
	budget := config.Credential{Name: "key1", Limits: limits}.Budget(ledger, table, log)
	budget.Unlimited = true
	for _, b := range table.Buckets() {
		if len(b.Split) > 0 && len(limits) > 0 {
			budget.Split = append(budget.Split, b.Name)
		}
	}
	m.Transport = metertest.Gate(t, m.server.URL, table, budget, log)
	t.Cleanup(func() { m.settled(t) })
}

// settled waits until all calls are settled.
func (m *metered) settled(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); m.Open() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d are open", m.Open())
		}
	}
}

func (m *metered) faults(t testing.TB, specs ...string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"faults": append([]string{}, specs...)})
	must(t, err)
	resp, err := http.Post(m.server.URL+"/standin/settings", "application/json",
		bytes.NewReader(text))
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
}

const (
	claude = "claude-sonnet-4-5"
	gpt    = "gpt-5-mini"
)

// message asks the stand-in of Anthropic for so many tokens of at most 200, chat that of OpenAI.
func (m *metered) message(ctx context.Context, output int, stream bool) *http.Request {
	return m.post(ctx, "/v1/messages", fmt.Sprintf(`{"model":%q,"max_tokens":200,"stream":%t,`+
		`"messages":[{"role":"user","content":"[[output:%d]]"}]}`, claude, stream, output))
}

func (m *metered) chat(ctx context.Context, output int, stream bool) *http.Request {
	return m.post(ctx, "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"max_tokens":200,`+
		`"stream":%t,"stream_options":{"include_usage":%[2]t},`+
		`"messages":[{"role":"user","content":"[[output:%d]]"}]}`, gpt, stream, output))
}

func (m *metered) post(ctx context.Context, path, body string) *http.Request {
	return m.request(ctx, "POST", path, strings.NewReader(body))
}

// request returns a request as a program sends it to any of the APIs.
func (m *metered) request(ctx context.Context, verb, path string, body io.Reader) *http.Request {
	r := request(ctx, verb, m.server.URL+path, body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	return r
}

func (m *metered) send(r *http.Request) (int, string, error) {
	return read((&http.Client{Transport: m}).Do(r))
}

// expectStatus sends a request, compares the response's status, and waits until the call is
// settled.
func (m *metered) expectStatus(t testing.TB, want int, r *http.Request) {
	t.Helper()
	if status, body, err := m.send(r); status != want || err != nil {
		t.Fatalf("%s %s: %d %s %v, want %d", r.Method, r.URL.Path, status, body, err, want)
	}
	m.settled(t)
}

// sendElsewhere sends a request to the stand-in with the same key, as another program would.
func sendElsewhere(t testing.TB, r *http.Request, header, value string) {
	t.Helper()
	r.Header.Set(header, value)
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	must(t, discard(resp))
}

// booked returns the units in the ledger's entries of a bucket and its parts.
func (m *metered) booked(t testing.TB, bucket string) int64 {
	t.Helper()
	units, _ := metertest.Booked(t, m.Budget.Ledger, "key1")
	return whole(units, bucket)
}

// held returns the units held in a bucket and its parts.
func (m *metered) held(t testing.TB, bucket string) int64 {
	t.Helper()
	_, held := metertest.Booked(t, m.Budget.Ledger, "key1")
	return whole(held, bucket)
}

// expectUnits compares the held and the booked units of a bucket and its parts.
func (m *metered) expectUnits(t testing.TB, bucket string, held, booked int64) {
	t.Helper()
	if h, b := m.held(t, bucket), m.booked(t, bucket); h != held || b != booked {
		t.Errorf("%s: %d units held and %d booked, want %d and %d", bucket, h, b, held, booked)
	}
}

// whole adds up the units of a bucket and its parts.
func whole(units map[string]int64, bucket string) (sum int64) {
	for name, n := range units {
		if quota.WholeOf(name) == bucket {
			sum += n
		}
	}
	return sum
}

// others returns the units of a bucket and its parts that other programs used, as the upstream
// reported.
func (m *metered) others(t testing.TB, bucket string) (sum int64) {
	t.Helper()
	usage, err := m.Budget.Usage(t.Context())
	must(t, err)
	for _, b := range usage.Buckets {
		for _, l := range b.Limits {
			if quota.WholeOf(b.Bucket) == bucket {
				sum += l.Others
			}
		}
	}
	return sum
}

// agrees checks that the ledger has what the stand-in billed, and no holds.
func (m *metered) agrees(t testing.TB, buckets ...string) {
	t.Helper()
	m.settled(t)
	for _, bucket := range buckets {
		got, billed := m.booked(t, bucket), whole(m.standin.Counts().Units, bucket)
		if got != billed {
			t.Errorf("%s: the ledger has %d units, the upstream billed %d", bucket, got, billed)
		}
		if held := m.held(t, bucket); held != 0 {
			t.Errorf("%s: %d units are still set aside", bucket, held)
		}
	}
}

// limitOn is a limit of so many units in any minute.
func limitOn(bucket string, units int64) quota.Limit {
	return quota.Limit{Bucket: bucket, Units: units, Window: quota.Sliding(time.Minute)}
}

// discard reads a body to its end.
func discard(resp *http.Response) error {
	defer resp.Body.Close()
	_, err := io.Copy(io.Discard, resp.Body)
	return err
}
