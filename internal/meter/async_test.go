package meter_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
)

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
