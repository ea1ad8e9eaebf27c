package meter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"strings"
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
	m.standin.Prices = map[string]float64{"input": 0.25, "output": 2, "cached": 0.025,
		"training": 1.5}
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

// batch returns a request that creates a batch from a file.
func (m *metered) batch(t testing.TB, file string) *http.Request {
	return m.post(t.Context(), "/v1/batches", fmt.Sprintf(`{"input_file_id":%q}`, file))
}
