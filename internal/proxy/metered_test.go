package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/ledger/redisledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/ledger/sqliteledger"
	"quotabudget/internal/meter"
	"quotabudget/internal/proxy"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
	"quotabudget/internal/upstream"
	"quotabudget/internal/upstream/upstreamtest"
)

// metered is a proxy in front of several stand-ins, with one ledger.
type metered struct {
	ledger   quota.Ledger
	proxy    *proxy.Proxy
	standins map[string]*standin.Server
	asked    map[string]chan http.Header // of the requests that came to each, while there is room
	log      upstreamtest.Log
	URL      string
}

// limited are the limits of a test, by upstream.
type limited map[string][]quota.Limit

// meteredOn starts stand-ins and a proxy; change sets them up before the first request.
func meteredOn(t testing.TB, l quota.Ledger, limits limited, change ...func(*metered)) *metered {
	t.Helper()
	m := &metered{ledger: l, standins: map[string]*standin.Server{},
		asked: map[string]chan http.Header{}}
	log := slog.New(slog.NewTextHandler(&m.log, nil))
	m.proxy = &proxy.Proxy{Limits: proxy.DefaultLimits(), Metrics: proxy.NewMetrics(), Log: log}
	for _, name := range []string{"generic", "openai", "anthropic"} {
		s, err := standin.New(name)
		must(t, err)
		s.Keys, s.Prices = []string{canary}, map[string]float64{}
		s.Limits = map[string][]standin.Limit{}
		asked := make(chan http.Header, 100)
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case asked <- r.Header.Clone():
			default:
			}
			s.ServeHTTP(w, r)
		}))
		t.Cleanup(web.Close)
		m.standins[name], m.asked[name] = s, asked
		table, err := costs.Shipped().Upstream(name)
		must(t, err)
		cred := config.Credential{Name: name, Upstream: name, Limits: limits[name]}
		gate, err := upstream.Gate(web.URL, table, cred.Budget(l, table, log),
			func() (string, error) { return canary, nil }, log)
		must(t, err)
		gate.Missed = m.proxy.Metrics.Missed
		t.Cleanup(gate.Base.(*http.Transport).CloseIdleConnections)
		to, err := url.Parse(web.URL)
		must(t, err)
		m.proxy.Upstreams = append(m.proxy.Upstreams,
			&proxy.Upstream{Name: name, Transport: gate, Endpoint: to})
	}
	for _, f := range change {
		f(m)
	}
	m.URL = serve(t, m.proxy, "127.0.0.1:0").URL
	return m
}

func onFile(t testing.TB) *sqliteledger.Ledger {
	t.Helper()
	l, err := sqliteledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func (m *metered) gate(name string) *meter.Transport {
	for _, u := range m.proxy.Upstreams {
		if u.Name == name {
			return u.Transport
		}
	}
	return nil
}

// post sends JSON to the proxy.
func (m *metered) post(ctx context.Context, path, body string, header ...string) (
	*http.Response, error) {
	return m.do(ctx, "POST", path, body, header...)
}

func (m *metered) do(ctx context.Context, verb, path, body string, header ...string) (
	*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, verb, m.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Anthropic-Version", "2023-06-01")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return http.DefaultClient.Do(r)
}

// settled waits until nothing is open.
func (m *metered) settled(t testing.TB) {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	await(t, func() bool { return m.proxy.UnderWay() == 0 })
	for _, u := range m.proxy.Upstreams {
		must(t, u.Transport.Finish(ctx))
	}
}

// booked are the units in the ledger by bucket, without what was learned, and what is still held.
func (m *metered) booked(t testing.TB, credential string) (units map[string]int64, held int64) {
	t.Helper()
	units = map[string]int64{}
	buckets, err := m.ledger.BucketsOf(t.Context(), credential)
	must(t, err)
	for _, bucket := range buckets {
		entries, err := m.ledger.Entries(t.Context(),
			quota.Query{Credential: credential, Bucket: bucket})
		must(t, err)
		for _, e := range entries {
			if e.Labels[quota.LabelSource] == "" {
				units[bucket] += e.Units
			}
		}
		holds, err := m.ledger.Reservations(t.Context(), credential, bucket)
		must(t, err)
		for _, h := range holds {
			held += h.Left
		}
	}
	return units, held
}

// agree wants the ledger to have what the stand-in billed, to the unit, and nothing held.
func (m *metered) agree(t testing.TB, name string) {
	t.Helper()
	m.settled(t)
	booked, held := m.booked(t, name)
	billed := m.standins[name].Counts().Units
	for bucket, units := range billed {
		if booked[bucket] != units {
			t.Errorf("%s: %d of %s are booked, %d were billed", name, booked[bucket], bucket, units)
		}
	}
	for bucket, units := range booked {
		if _, known := billed[bucket]; !known && units > 0 {
			t.Errorf("%s: %d of %s are booked, none were billed", name, units, bucket)
		}
	}
	if held != 0 || len(billed) == 0 {
		t.Errorf("%s: %d are held, billed: %v", name, held, billed)
	}
}

// chat is a request of a stream of OpenAI's; message is one of Anthropic's.
func chat(n, output int) string {
	return fmt.Sprintf(`{"model":"gpt-4.1","max_tokens":400,"stream":true,
		"stream_options":{"include_usage":true},
		"messages":[{"role":"user","content":"%d [[output:%d]]"}]}`, n, output)
}

func message(n, output int) string {
	return fmt.Sprintf(`{"model":"other","max_tokens":400,"stream":true,
		"messages":[{"role":"user","content":"%d [[output:%d]]"}]}`, n, output)
}

// quiet gives the stand-ins limits that nothing meets, and the prices of their lists.
func quiet(m *metered) {
	many := []standin.Limit{{Units: 1 << 40, Window: time.Minute}}
	o, a := m.standins["openai"], m.standins["anthropic"]
	o.Limits["requests"], o.Limits["tokens"] = many, many
	o.Prices["input"], o.Prices["cached"], o.Prices["output"] = 2, 0.5, 8
	a.Limits["requests"], a.Limits["input"], a.Limits["output"] = many, many, many
	a.Prices["input"], a.Prices["output"] = 15, 75
}

// TestStreams: 50 streams side by side, of two upstreams, a third of them cut by the caller, and
// some refused by a server that fails. In the end the ledger has what was billed, to the unit.
func TestStreams(t *testing.T) {
	t.Parallel()
	m := meteredOn(t, onFile(t), limited{"openai": {{Bucket: "tokens", Units: 1 << 40,
		Window: quota.Sliding(time.Minute)}}}, quiet, func(m *metered) {
		faults, err := standin.ParseFaults("503/11")
		must(t, err)
		for _, name := range []string{"openai", "anthropic"} {
			m.standins[name].Pace, m.standins[name].Faults = 2*time.Millisecond, faults
		}
	})
	m.streams(t, 50)
	m.agree(t, "openai")
	m.agree(t, "anthropic")
	for _, name := range []string{"openai", "anthropic"} {
		if c := m.standins[name].Counts(); c.Cut != 0 || c.Requests != 25 {
			t.Errorf("%s counted %+v: every answer is read to its end", name, c)
		}
	}
	billed := m.standins["openai"].Counts().Units["tokens/gpt-4.1"]
	if units := m.metric(t, "proxy_units_total tokens/gpt-4.1"); units != billed {
		t.Errorf("%d tokens are counted, %d were billed, callers hung up or not", units, billed)
	}
	if log := m.log.String(); strings.Contains(log, canary) || strings.Contains(log, "sk-mine") {
		t.Error("a key is in the log")
	}
}

// streams sends n of them side by side.
func (m *metered) streams(t testing.TB, n int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		path, body := "/openai/v1/chat/completions", chat(i, 20+i)
		if i%2 == 1 {
			path, body = "/anthropic/v1/messages", message(i, 20+i)
		}
		all.Go(func() {
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			resp, err := m.post(ctx, path, body, "Authorization", "Bearer sk-mine")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if i%3 == 0 {
				bufio.NewReader(resp.Body).ReadString('\n')
				return
			}
			if _, err := io.ReadAll(resp.Body); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestStreamsWithoutRedis: the ledger's server is gone while streams are under way. What they took
// is booked once it is back.
func TestStreamsWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{AOF: true})
	l, err := redisledger.Open(t.Context(), server.URL())
	must(t, err)
	t.Cleanup(func() { l.Close() })
	m := meteredOn(t, l, nil, quiet, func(m *metered) {
		m.standins["openai"].Pace = 20 * time.Millisecond
	})
	var begun, all sync.WaitGroup
	for i := range 20 {
		begun.Add(1)
		all.Go(func() {
			resp, err := m.post(t.Context(), "/openai/v1/chat/completions", chat(i, 30))
			if err != nil {
				t.Error(err)
				begun.Done()
				return
			}
			defer resp.Body.Close()
			in := bufio.NewReader(resp.Body)
			in.ReadString('\n')
			begun.Done()
			if _, err := io.ReadAll(in); err != nil {
				t.Error(err)
			}
		})
	}
	begun.Wait()
	server.Kill()
	all.Wait() // the callers have their answers, whatever the ledger does
	resp, err := m.post(t.Context(), "/openai/v1/chat/completions", chat(99, 30))
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a call without a ledger is answered %d", resp.StatusCode)
	}
	server.Restart(t)
	m.agree(t, "openai")
}

// TestDrainBound: an answer without end is not read for ever when its caller has gone. What was
// held stays so.
func TestDrainBound(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]meter.Drain{
		"time": {Time: 50 * time.Millisecond, Bytes: 1 << 30}, "bytes": {Time: time.Hour, Bytes: 200},
	} {
		t.Run(name, func(t *testing.T) {
			m := meteredOn(t, onFile(t), nil, quiet, func(m *metered) {
				var err error
				m.standins["openai"].Faults, err = standin.ParseFaults("endless")
				must(t, err)
				m.gate("openai").Drain = drain
			})
			ctx, hangUp := context.WithCancel(t.Context())
			resp, err := m.post(ctx, "/openai/v1/chat/completions", chat(1, 30))
			must(t, err)
			bufio.NewReader(resp.Body).ReadString('\n')
			hangUp()
			m.settled(t)
			resp.Body.Close()
			booked, held := m.booked(t, "openai")
			if held < 400 || booked["tokens/gpt-4.1"] != 0 {
				t.Errorf("%d are held, %v booked", held, booked)
			}
			if units := m.metric(t, "proxy_units_total tokens/gpt-4.1"); units < 400 {
				t.Errorf("%d units are counted of a hold that lapses", units)
			}
		})
	}
}

// TestMissing: an answer that does not say what it took is booked as the most that it can be, and
// that is said once.
func TestMissing(t *testing.T) {
	t.Parallel()
	m := meteredOn(t, onFile(t), nil, quiet)
	for i := range 3 {
		body := strings.Replace(chat(i, 30), `"include_usage":true`, `"include_usage":false`, 1)
		resp, err := m.post(t.Context(), "/openai/v1/chat/completions", body)
		must(t, err)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	m.settled(t)
	booked, held := m.booked(t, "openai")
	if booked["tokens/gpt-4.1"] < 3*400 || booked["requests/gpt-4.1"] != 3 || held != 0 {
		t.Errorf("booked %v, %d held", booked, held)
	}
	if n := strings.Count(m.log.String(), "does not say what the call took"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
	for name, want := range map[string]int64{"proxy_answers_without_cost_total": 3,
		"proxy_units_total tokens/gpt-4.1": booked["tokens/gpt-4.1"],
		"proxy_units_total money":          booked["money"],
		"proxy_requests_total served":      3, "proxy_requests_in_flight": 0} {
		if got := m.metric(t, name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

// TestMissingAfterCheap: who keeps an answer from saying what it took does not pay by what the cheap
// calls of others took, but the most that the call can have taken.
func TestMissingAfterCheap(t *testing.T) {
	t.Parallel()
	m := meteredOn(t, onFile(t), nil, quiet)
	for i := range 25 {
		body := chat(i, 3)
		if i >= 20 {
			body = strings.Replace(chat(i, 300), `"include_usage":true`, `"include_usage":false`, 1)
		}
		resp, err := m.post(t.Context(), "/openai/v1/chat/completions", body)
		must(t, err)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		m.settled(t)
	}
	booked, _ := m.booked(t, "openai")
	for bucket, billed := range m.standins["openai"].Counts().Units {
		if booked[bucket] < billed {
			t.Errorf("%d of %s are booked, %d were billed", booked[bucket], bucket, billed)
		}
	}
}

// metric is the value of a metric; after its name come values that its labels have.
func (m *metered) metric(t testing.TB, name string) int64 {
	t.Helper()
	words := strings.Fields(name)
	families, err := m.proxy.Metrics.Registry.Gather()
	must(t, err)
	for _, family := range families {
		for _, one := range family.GetMetric() {
			labels := map[string]bool{family.GetName(): true}
			for _, label := range one.GetLabel() {
				labels[label.GetValue()] = true
			}
			if !slices.ContainsFunc(words, func(w string) bool { return !labels[w] }) {
				return int64(one.GetCounter().GetValue() + one.GetGauge().GetValue())
			}
		}
	}
	return -1
}

// TestNeverHeld: a request that cannot be priced is not sent; one for which no connection comes
// about gives back what was held; one that is too large is refused.
func TestNeverHeld(t *testing.T) {
	t.Parallel()
	m := meteredOn(t, onFile(t), nil, quiet)
	for body, want := range map[string]int{
		`{"model":`: 400, `{"model":"a","max_tokens":-5}`: 400, `{"model":"a","model":"b"}`: 400,
		strings.Repeat(" ", meter.MaxBody+1): 413,
	} {
		resp, err := m.post(t.Context(), "/openai/v1/chat/completions", body)
		must(t, err)
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%.40q: %d %.200s", body, resp.StatusCode, text)
		}
	}
	if c := m.standins["openai"].Counts(); c.Requests != 0 {
		t.Errorf("%d requests were sent", c.Requests)
	}
	m.gate("openai").Host = "127.0.0.1:1"
	m.proxy.Upstreams[1].Endpoint = &url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: "/"}
	resp, err := m.post(t.Context(), "/openai/v1/chat/completions", chat(1, 30))
	must(t, err)
	resp.Body.Close()
	m.settled(t)
	if booked, held := m.booked(t, "openai"); resp.StatusCode != 502 || held != 0 ||
		booked["tokens/gpt-4.1"] != 0 {
		t.Errorf("%d: %d held, %v booked", resp.StatusCode, held, booked)
	}
}

// TestOvershoot: what is billed exceeds a limit by no more than the estimates in flight may be
// short of the truth. Callers that are denied get a body that their clients can read.
func TestOvershoot(t *testing.T) {
	t.Parallel()
	const limit, most = 2000, 150
	m := meteredOn(t, onFile(t), limited{"openai": {{Bucket: "tokens", Units: limit,
		Window: quota.Sliding(time.Hour)}}}, quiet, func(m *metered) {
		m.standins["openai"].Pace = time.Millisecond
		m.gate("openai").Estimates = meter.Estimates{
			"openai.chat.completions.create/tokens": {Most: most}}
	})
	var mu sync.Mutex
	var short int64 // the sum of most - held, at its largest
	stop := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			holds, err := m.ledger.Reservations(context.Background(), "openai", "tokens/gpt-4.1")
			sum := int64(0)
			for _, h := range holds {
				sum += h.Most - h.Left
			}
			mu.Lock()
			short = max(short, sum)
			mu.Unlock()
			select {
			case <-stop:
				return
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	var denied string
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			resp, err := m.post(t.Context(), "/openai/v1/chat/completions", chat(i, 399))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode == 429 {
				mu.Lock()
				defer mu.Unlock()
				denied = string(body)
				if resp.Header.Get("Retry-After") == "" ||
					resp.Header.Get("X-Should-Retry") != "false" {
					t.Errorf("headers %v", resp.Header)
				}
			}
		})
	}
	all.Wait()
	m.agree(t, "openai")
	close(stop)
	<-watched
	billed := m.standins["openai"].Counts().Units["tokens/gpt-4.1"]
	t.Logf("limit %d, billed %d, bound %d", limit, billed, limit+short)
	if billed > limit+short || billed <= limit {
		t.Errorf("%d billed, the bound is %d + %d", billed, limit, short)
	}
	var said struct {
		Error struct{ Message, Type, Code string }
	}
	if json.Unmarshal([]byte(denied), &said) != nil || said.Error.Type != "rate_limit_error" ||
		said.Error.Code != "quota_exceeded" || !strings.Contains(said.Error.Message, "tokens/gpt") {
		t.Errorf("denied with %s", denied)
	}
}

// TestCredentials: what a caller has in the place of the credential is replaced, wherever the
// upstream takes it, and requests come by path and by the upstream's own host.
func TestCredentials(t *testing.T) {
	t.Parallel()
	m := meteredOn(t, onFile(t), nil, quiet)
	for _, header := range [][]string{{"Authorization", "Bearer sk-mine"}, {"X-Api-Key", "sk-mine"},
		{"OpenAI-Organization", "sk-mine"}, {"Host", "api.anthropic.com"}} {
		for name, body := range map[string]string{"openai": chat(1, 3), "anthropic": message(1, 3)} {
			path := map[string]string{"openai": "/v1/chat/completions",
				"anthropic": "/v1/messages"}[name]
			if strings.HasPrefix(header[0], "OpenAI") && name != "openai" {
				continue // it means nothing there
			}
			r, err := http.NewRequest("POST", m.URL+"/"+name+path, strings.NewReader(body))
			must(t, err)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Anthropic-Version", "2023-06-01")
			r.Header.Set(header[0], header[1])
			if header[0] == "Host" {
				if name == "openai" {
					continue
				}
				r.Host, r.URL.Path = header[1], path
			}
			if a := read(t, r); a.status != 200 {
				t.Errorf("%s with %s: %d %s", name, header[0], a.status, a.body)
				continue
			}
			sent := <-m.asked[name]
			text := fmt.Sprint(sent)
			if strings.Contains(text, "sk-mine") || !strings.Contains(text, canary) {
				t.Errorf("%s with %s: sent %v", name, header[0], sent)
			}
		}
	}
	m.agree(t, "openai")
	m.agree(t, "anthropic")
}
