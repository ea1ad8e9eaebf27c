package meter_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/ledger"
	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
)

// later returns a time at which every note is due.
func later() time.Time { return time.Now().Add(time.Hour) }

// openJobs returns a gate with a journal and a ledger in SQLite.
func openJobs(t testing.TB, name string) *metered {
	t.Helper()
	return openJobsOn(t, name, metertest.File(t))
}

func openJobsOn(t testing.TB, name string, l *ledger.Ledger) *metered {
	t.Helper()
	m := onLedger(t, name, l, limitOn("tokens", 1e9), quota.Limit{Bucket: "money",
		Units: 1e11, Window: quota.Window{Calendar: "month", Zone: time.UTC}},
		quota.Limit{Bucket: "batch_tokens", Units: 1e11, Window: quota.Sliding(24 * time.Hour)},
		quota.Limit{Bucket: "batched", Units: 1e6, Window: quota.Sliding(24 * time.Hour)})
	m.standin.Prices = map[string]float64{"input": 0.25, "output": 2, "cached": 0.025, "training": 1.5}
	if name == "anthropic" {
		m.standin.Prices = map[string]float64{"input": 3, "output": 15, "cached": 0.3}
	}
	m.journal(t, filepath.Join(t.TempDir(), "journal.db"))
	return m
}

func (m *metered) journal(t testing.TB, path string) {
	j := &ledger.Journal{Path: path, Ledger: "ledger", Credential: "key1"}
	t.Cleanup(func() { j.Close() })
	m.Budget.Journal = j
}

// restarted returns the gate of another process on the same host and ledger.
func (m *metered) restarted(t testing.TB) *metered {
	t.Helper()
	table, err := costs.Shipped().Upstream(m.Table.Upstream)
	must(t, err)
	next := &metered{standin: m.standin, server: m.server, log: m.log}
	next.gate(t, table, m.Budget.Ledger, m.Budget.Limits)
	next.journal(t, m.Budget.Journal.(*ledger.Journal).Path)
	return next
}

// advance moves the stand-in's clock forward.
func (m *metered) advance(t testing.TB, by string) {
	t.Helper()
	resp, err := http.Post(m.server.URL+"/standin/settings", "application/json",
		strings.NewReader(fmt.Sprintf(`{"advance":%q}`, by)))
	must(t, err)
	resp.Body.Close()
}

// get returns a document.
func (m *metered) get(t testing.TB, path string) map[string]any {
	t.Helper()
	return m.document(t, m.request(t.Context(), "GET", path, nil))
}

func (m *metered) document(t testing.TB, r *http.Request) (doc map[string]any) {
	t.Helper()
	status, body, err := m.send(r)
	must(t, err)
	m.settled(t)
	_ = json.Unmarshal([]byte(body), &doc) // fails for results, which are several documents
	if status >= 400 {
		t.Logf("%s %s: %d %s", r.Method, r.URL.Path, status, body)
	}
	return doc
}

// create posts a document and returns the ID of the job it starts.
func (m *metered) create(t testing.TB, path, format string, args ...any) string {
	t.Helper()
	return m.document(t, m.post(t.Context(), path, fmt.Sprintf(format, args...)))["id"].(string)
}

// upload uploads a file and returns its ID.
func (m *metered) upload(t testing.TB, purpose, lines string) string {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("file", "lines.jsonl")
	must(t, err)
	_, _ = io.WriteString(file, lines)
	must(t, form.WriteField("purpose", purpose))
	must(t, form.Close())
	r := m.post(t.Context(), "/v1/files", body.String())
	r.Header.Set("Content-Type", form.FormDataContentType())
	id, _ := m.document(t, r)["id"].(string)
	return id
}

const (
	chatLine = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-5-mini",` +
		`"max_completion_tokens":200,"messages":[{"role":"user","content":"[[output:40]][[cached:9]]"}]}}` + "\n"
	responseLine = `{"custom_id":"b","method":"POST","url":"/v1/responses","body":{"model":"gpt-5-mini",` +
		`"max_output_tokens":200,"input":"[[output:31]]"}}` + "\n"
	message = `{"custom_id":"c","params":{"model":"claude-sonnet-4-5","max_tokens":200,` +
		`"messages":[{"role":"user","content":"[[output:40]][[cached:7]]"}]}}`
	expires = "[[expires:1]]" // in a prompt: the batch expires before this call
	tuning  = `{"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}]}` + "\n"
)

// work lists the kinds of calls that end after their response.
type work struct {
	api, name, path, buckets string
	begin                    func(t testing.TB, m *metered) (id string)
}

func (w work) get() string { return "/v1/" + w.path + "/" }

var works = []work{
	{"openai", "response", "responses", "tokens money", func(t testing.TB, m *metered) string {
		return m.create(t, "/v1/responses",
			`{"model":"gpt-5-mini","input":"[[output:50]]","background":true}`)
	}},
	{"openai", "batch", "batches", "batch_tokens money",
		batchOf(strings.Repeat(chatLine, 3) + responseLine)},
	{"openai", "batch that expires", "batches", "batch_tokens money",
		batchOf(chatLine + strings.Replace(chatLine, "[[", expires+"[[", 1) + responseLine)},
	{"openai", "fine-tuning", "fine_tuning/jobs", "money", func(t testing.TB, m *metered) string {
		file := m.upload(t, "fine-tune", strings.Repeat(tuning, 40))
		return m.create(t, "/v1/fine_tuning/jobs",
			`{"training_file":%q,"model":"gpt-4.1-nano-2025-04-14"}`, file)
	}},
	{"anthropic", "messages", "messages/batches", "batched money",
		messagesOf(message, message, message)},
	{"anthropic", "messages that expire", "messages/batches", "batched money",
		messagesOf(message, strings.Replace(message, "[[", expires+"[[", 1), message)},
}

func batchOf(lines string) func(testing.TB, *metered) string {
	return func(t testing.TB, m *metered) string {
		return m.create(t, "/v1/batches",
			`{"input_file_id":%q,"endpoint":"/v1/responses","completion_window":"24h"}`,
			m.upload(t, "batch", lines))
	}
}

func messagesOf(requests ...string) func(testing.TB, *metered) string {
	return func(t testing.TB, m *metered) string {
		return m.create(t, "/v1/messages/batches", `{"requests":[%s]}`,
			strings.Join(requests, ","))
	}
}

func onWorks(t *testing.T, test func(*testing.T, work, *metered)) {
	for _, w := range works {
		t.Run(w.name, func(t *testing.T) { test(t, w, openJobs(t, w.api)) })
	}
}

// TestWorkThatEndsLater: the maximum cost of such a call is held until a response reports its end.
// Its usage is booked once, however many polls in any process report it.
func TestWorkThatEndsLater(t *testing.T) {
	onWorks(t, func(t *testing.T, w work, m *metered) {
		id := w.begin(t, m)
		held := m.held(t, "money")
		m.get(t, w.get()+id)
		m.get(t, w.get()+"none")
		m.expectUnits(t, "money", held, 0)
		m.advance(t, "25h")
		next := m.restarted(t)
		next.get(t, w.get()+id)
		next.get(t, w.get()+id)
		next.Poll(t.Context(), later()) // reads Anthropic's results
		next.agrees(t, strings.Fields(w.buckets)...)
		m.Poll(t.Context(), later())
		m.get(t, w.get()+id)
		m.agrees(t, strings.Fields(w.buckets)...)
		if billed := m.standin.Counts().Units["money"]; billed == 0 || billed > held {
			t.Errorf("the stand-in billed %d, %d were held", billed, held)
		}
		if log := m.log.String(); strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") {
			t.Error(log)
		}
	})
}

// TestPoll: the gate itself polls for the end of the work. Work that was done before a cancellation
// is booked, too.
func TestPoll(t *testing.T) {
	onWorks(t, func(t *testing.T, w work, m *metered) {
		for _, end := range []func(id string){
			func(string) { m.advance(t, "25h") },
			func(id string) { m.document(t, m.post(t.Context(), w.get()+id+"/cancel", "")) },
		} {
			billed := m.standin.Counts().Units["money"]
			id := w.begin(t, m)
			m.Poll(t.Context(), later())
			if m.held(t, "money") == 0 {
				t.Error("no units are held before the end")
			}
			end(id)
			m.Poll(t.Context(), later().Add(time.Hour))
			m.Poll(t.Context(), later().Add(2*time.Hour))
			m.agrees(t, strings.Fields(w.buckets)...)
			if m.standin.Counts().Units["money"] == billed {
				t.Error("the stand-in billed nothing")
			}
		}
	})
}

// TestProcessesSeeTheEnd: several processes get the response at once, and one settles the call.
func TestProcessesSeeTheEnd(t *testing.T) {
	onWorks(t, func(t *testing.T, w work, m *metered) {
		id := w.begin(t, m)
		m.advance(t, "25h")
		if w.api == "anthropic" {
			m.get(t, w.get()+id)
			id += "/results"
		}
		all := []*metered{m, m.restarted(t), m.restarted(t), m.restarted(t)}
		var responses []*http.Response
		for _, gate := range all {
			resp, err := gate.RoundTrip(gate.request(t.Context(), "GET", w.get()+id, nil))
			must(t, err)
			responses = append(responses, resp)
		}
		var readers sync.WaitGroup
		for _, resp := range responses {
			readers.Go(func() { discard(resp) })
		}
		readers.Wait()
		for _, gate := range all {
			gate.settled(t)
		}
		m.agrees(t, "money")
	})
}

// TestResultsOfABatch: if a batch does not report its usage, the lines of its output are read. If
// they lack it, too, the maximum is booked.
func TestResultsOfABatch(t *testing.T) {
	for _, lines := range []bool{true, false} {
		m := openJobs(t, "openai")
		id := works[1].begin(t, m)
		held := m.held(t, "money")
		m.advance(t, "25h")
		m.faults(t, "no-usage")
		m.get(t, "/v1/batches/"+id)
		if lines {
			m.faults(t)
		}
		m.Poll(t.Context(), later())
		if lines {
			m.agrees(t, "money", "batch_tokens")
		} else {
			m.expectUnits(t, "money", 0, held)
		}
	}
}

// TestResponsesThatAreNoEnd: a truncated response, an error or another document does not settle the
// call, and the gate polls again.
func TestResponsesThatAreNoEnd(t *testing.T) {
	onWorks(t, func(t *testing.T, w work, m *metered) {
		id := w.begin(t, m)
		held := m.held(t, "money")
		m.advance(t, "25h")
		for _, fault := range []string{"401", "429", "500", "html", "drop", "cut", "truncated"} {
			m.faults(t, fault)
			_, _, _ = m.send(m.request(t.Context(), "GET", w.get()+id, nil))
			m.settled(t)
			m.expectUnits(t, "money", held, 0)
			for _, bucket := range m.Table.BucketNames() {
				_ = m.Budget.Resume(t.Context(), bucket)
			}
		}
		m.faults(t)
		m.get(t, w.get()+id)
		m.Poll(t.Context(), later())
		m.agrees(t, "money")
	})
}

// TestWorkOnALostLedger: the usage is booked although the ledger has lost the hold.
func TestWorkOnALostLedger(t *testing.T) {
	onWorks(t, func(t *testing.T, w work, m *metered) {
		id := w.begin(t, m)
		holds, err := m.Budget.Ledger.Reservations(t.Context(), "key1", "money")
		must(t, err)
		_, err = m.Budget.Release(t.Context(), holds[0].ID)
		must(t, err)
		m.advance(t, "25h")
		for range 2 {
			m.get(t, w.get()+id)
			m.Poll(t.Context(), later())
			m.settled(t)
		}
		m.agrees(t, "money")
	})
}

// batch returns a request that creates a batch from a file.
func (m *metered) batch(t testing.TB, file string) *http.Request {
	return m.post(t.Context(), "/v1/batches", fmt.Sprintf(`{"input_file_id":%q}`, file))
}

// TestRefusedLines: calls without a price and unknown files are refused, and the error names a
// journal that cannot be read.
func TestRefusedLines(t *testing.T) {
	m := openJobs(t, "openai")
	for lines, why := range map[string]string{
		chatLine + "no JSON\n":                                           "call 2: it is not JSON",
		chatLine + `{"custom_id":"b"}` + "\n":                            "call 2: it names no call",
		strings.Replace(chatLine, "chat", "cat", 1):                      "call 1: POST",
		strings.Replace(chatLine, `"body":{`, `"body":{"model":"a",`, 1): "call 1: it is not JSON",
		strings.Replace(chatLine, "chat/completions", "moderations", 1):  "money in the lines is missing",
	} {
		_, _, err := m.send(m.batch(t, m.upload(t, "batch", lines)))
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %s", lines, err, why)
		}
	}
	for _, file := range []string{"file-of-another", ""} {
		_, _, err := m.send(m.batch(t, file))
		refused(t, err, quota.ErrUnpriced)
	}
	_, _, err := m.send(m.post(t.Context(), "/v1/fine_tuning/jobs", fmt.Sprintf(
		`{"training_file":%q,"model":"gpt-4.1","method":{"type":"reinforcement"}}`,
		m.upload(t, "fine-tune", tuning))))
	refused(t, err, quota.ErrUnpriced)

	file := m.upload(t, "batch", chatLine)
	m.journal(t, t.TempDir()) // a folder
	_, _, err = m.send(m.batch(t, file))
	refused(t, err, quota.ErrJournal)
}

// TestCreationWithoutAResponse: without a response the hold stays, and the maximum is booked when
// it lapses.
func TestCreationWithoutAResponse(t *testing.T) {
	for _, fault := range []string{"drop", "cut"} {
		m := openJobs(t, "openai")
		file := m.upload(t, "batch", chatLine)
		m.faults(t, fault)
		_, _, err := m.send(m.batch(t, file))
		m.settled(t)
		if err == nil || m.held(t, "money")+m.booked(t, "money") == 0 {
			t.Errorf("%s: %v, %d are held, %d booked", fault, err, m.held(t, "money"),
				m.booked(t, "money"))
		}
	}
}

// TestWatchEnds: Watch returns when its context ends.
func TestWatchEnds(t *testing.T) {
	m := openJobs(t, "openai")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.Watch(ctx)
}

// TestLapseOfWork: a hold that is not settled lapses, and the maximum is booked. A later response
// that reports the end still replaces it with the usage.
func TestLapseOfWork(t *testing.T) {
	for _, name := range []string{"sqlite", "redis"} {
		for _, w := range works {
			t.Run(name+"/"+w.name, func(t *testing.T) {
				lapse := map[string]time.Duration{"response": 2 * time.Hour,
					"fine-tuning": 72 * time.Hour}[w.name]
				lapse = cmp.Or(lapse, 26*time.Hour)
				begin := time.Now()
				l, now := metertest.File(t), begin
				l.Now = func() time.Time { return now }
				set := func(at time.Time) { now = at }
				if name == "redis" {
					l, set = metertest.Redis(t)
				}
				set(begin)
				m := openJobsOn(t, w.api, l)
				id := w.begin(t, m)
				set(begin.Add(lapse - time.Minute))
				held := m.held(t, "money")
				if held == 0 || m.booked(t, "money") != 0 {
					t.Errorf("%d are held a minute before the lapse", held)
				}
				set(begin.Add(lapse + time.Minute))
				most := m.booked(t, "money")
				if m.held(t, "money") != 0 || most < held {
					t.Errorf("%d are booked a minute after the lapse, %d were held", most, held)
				}
				m.advance(t, "25h")
				m.get(t, w.get()+id)
				m.Poll(t.Context(), later())
				m.agrees(t, "money")
			})
		}
	}
}
