package meter_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// TestLessons: use of the same quota by other programs is recorded once a response reports it, only
// downward and only once.
func TestLessons(t *testing.T) {
	m := openMetered(t, "anthropic", limitOn("output", 2000))
	m.standin.Limits["output"] = []standin.Limit{{Units: 2000, Window: time.Minute}}
	for range 4 {
		sendElsewhere(t, m.message(t.Context(), 150, false), "X-Api-Key", canary)
	}
	for range 3 {
		m.expectStatus(t, 200, m.message(t.Context(), 50, false))
	}
	// What the bucket regains meanwhile is less than the 600 that were spent.
	foreign := m.others(t, "output")
	if foreign < 400 || foreign > 600 || m.booked(t, "output") != 150 {
		t.Errorf("%d units were used by others, %d of ours", foreign,
			m.booked(t, "output"))
	}
	log := m.log.String()
	if !strings.Contains(log, "fewer units left than the ledger") ||
		!strings.Contains(log, "anthropic-ratelimit-output-tokens-remaining") {
		t.Errorf("log: %s", log)
	}
	m.faults(t, "stale") // now all is left, it says
	m.expectStatus(t, 200, m.message(t.Context(), 50, false))
	if after := m.others(t, "output"); after < foreign {
		t.Errorf("%d units were used by others, then %d", foreign, after)
	}
}

// TestLessonsInFlight: the upstream counts the most that calls in flight can take, and reports less
// left when a call begins. After their end, their unused units do not count as use by other
// programs. Use elsewhere still does.
func TestLessonsInFlight(t *testing.T) {
	t.Parallel()
	for _, others := range []int{0, 10} {
		m := openMetered(t, "openai", limitOn("tokens", 100_000))
		// which regains next to nothing while the test runs
		m.standin.Limits["tokens"] = []standin.Limit{{Units: 100_000, Window: 24 * time.Hour}}
		m.standin.Pace = time.Millisecond
		spent := int64(0)
		for range others {
			sendElsewhere(t, m.chat(t.Context(), 900, false), "Authorization", "Bearer "+canary)
			spent = m.standin.Counts().Units["tokens/"+gpt]
		}
		var open []*http.Response
		for i := range 20 {
			resp, err := m.RoundTrip(m.chat(t.Context(), 5+i, true))
			must(t, err)
			open = append(open, resp)
		}
		for i := range open {
			must(t, discard(open[i*7%len(open)]))
			m.settled(t)
			if foreign := m.others(t, "tokens"); foreign > spent {
				t.Errorf("%d units were used by others, %d were spent elsewhere",
					foreign, spent)
			}
		}
		m.expectStatus(t, 200, m.chat(t.Context(), 5, false))
		if foreign := m.others(t, "tokens"); foreign < spent/2 {
			t.Errorf("%d units were used by others, %d were spent elsewhere",
				foreign, spent)
		}
	}
}

// TestLessonsOfKnownPrices: the gate also learns from the response to a call of a known price, and
// learns about the only limit with a window if another limits concurrent calls.
func TestLessonsOfKnownPrices(t *testing.T) {
	m := openMetered(t, "generic")
	list, err := costs.ParseList("costs.yaml", []byte(`
hosts: [example.com]
credential: {header: x-api-key}
sources: {own: {status: official, date: 2026-06-01, text: none}}
buckets: {requests: {unit: requests}}
methods:
  any.call: {route: "GET /{p...}", cost: {requests: 1}, source: own}
learn:
  - {bucket: requests, remaining: x-left, source: own}
`), nil)
	must(t, err)
	m.gate(t, list.Usual(), m.Budget.Ledger, []quota.Limit{limitOn("requests", 100),
		{Bucket: "requests", Units: 50, Window: quota.Window{Concurrent: true}}})
	m.reply(200, "", "X-Left", "40")
	m.expectStatus(t, 200, m.request(t.Context(), "GET", "/a", nil))
	m.expectUnits(t, "requests", 0, 1)
	if foreign := m.others(t, "requests"); foreign != 59 || strings.Contains(m.log.String(), "WARN") {
		t.Errorf("%d requests were used by others: %s", foreign, m.log)
	}
}

// TestMonthIsSpent: a monthly cap looks like a throttle of a minute. It suspends the money until
// the month's end; the throttle suspends calls until the moment that it names.
func TestMonthIsSpent(t *testing.T) {
	for fault, closed := range map[string]bool{"spend": true, "429": false} {
		m := openMetered(t, "anthropic", quota.Limit{Bucket: "money", Units: 1e9,
			Window: quota.Window{Calendar: "month", Zone: time.UTC}})
		m.faults(t, fault)
		status, body, err := m.send(m.message(t.Context(), 50, false))
		if status != 429 || !strings.Contains(body, "error") || err != nil {
			t.Errorf("%s: %d %s %v", fault, status, body, err)
		}
		m.faults(t)
		now := time.Now().UTC()
		end := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		_, _, err = m.send(m.message(t.Context(), 50, false))
		refused(t, err, quota.ErrExhausted)
		if d := denialOf(t, err); !closed {
			if d.Limit != quota.Suspended || d.RetryAfter() > time.Minute {
				t.Errorf("%s for %s, want a minute at most", d.Limit, d.RetryAfter())
			}
			continue
		}
		if d := denialOf(t, err); d.Limit != quota.Suspended || !d.RetryAt.Equal(end) {
			t.Errorf("%s until %s, want %s", d.Limit, d.RetryAt, end)
		}
		if m.booked(t, "money")+m.held(t, "money") != 0 {
			t.Error("the refused call took money")
		}
	}
}

// TestResetFarAway: a reset months ahead does not suspend a bucket of an hour until then.
func TestResetFarAway(t *testing.T) {
	m := openMetered(t, "github", quota.Limit{Bucket: "core", Units: 100,
		Window: quota.Window{Length: time.Hour, Anchored: true}})
	reset := time.Now().AddDate(0, 0, 390).Unix()
	m.reply(http.StatusForbidden, `{"message":"API rate limit exceeded"}`,
		"X-Ratelimit-Resource", "core", "X-Ratelimit-Remaining", "0",
		"X-Ratelimit-Reset", strconv.FormatInt(reset, 10))
	m.expectStatus(t, http.StatusForbidden, m.request(t.Context(), "GET", "/repos/a/b", nil))
	_, _, err := m.send(m.request(t.Context(), "GET", "/repos/a/b", nil))
	d := denialOf(t, err)
	if wait := time.Until(d.RetryAt); wait < time.Hour || wait > 60*time.Hour {
		t.Errorf("closed for %s, by %s", wait, d.Limit)
	}
	if foreign := m.others(t, "core"); foreign != 0 {
		t.Errorf("%d were used by others", foreign)
	}
}

// TestThrottleHoldsBack: a Retry-After without a bucket suspends only the buckets that the call was
// charged to, not the money or another model. It does not shorten an existing suspension.
func TestThrottleHoldsBack(t *testing.T) {
	m := openMetered(t, "anthropic", limitOn("requests", 100), quota.Limit{Bucket: "money",
		Units: 1e9, Window: quota.Window{Calendar: "month", Zone: time.UTC}})
	far := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	m.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(body), "haiku"):
			io.WriteString(w, `{"usage":{"input_tokens":1,"output_tokens":1}}`)
			return
		case strings.Contains(string(body), "[[output:7]]"): // another process was refused meanwhile
			must(t, m.Budget.SuspendUntil(r.Context(), "output/sonnet-4", far, ""))
		}
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(529)
		io.WriteString(w, `{"type":"error","error":{"type":"overloaded_error"}}`)
	})
	m.expectStatus(t, 529, m.message(t.Context(), 7, false))
	_, _, err := m.send(m.message(t.Context(), 1, false))
	if d := denialOf(t, err); d.Limit != quota.Suspended || !d.RetryAt.Equal(far) {
		t.Errorf("%s until %s, want %s", d.Limit, d.RetryAt, far)
	}
	must(t, m.Budget.Resume(t.Context(), "output/sonnet-4"))
	_, _, err = m.send(m.message(t.Context(), 1, false))
	d := denialOf(t, err)
	if d.Limit != quota.Suspended || d.RetryAfter() > 30*time.Second || d.RetryAfter() < time.Second {
		t.Errorf("%s for %s, want 30 s", d.Limit, d.RetryAfter())
	}
	// status shows no bucket without a limit, so its suspension would be invisible
	until, err := m.Budget.SuspendedUntil(t.Context(), "input/sonnet-4")
	if must(t, err); !until.IsZero() {
		t.Errorf("a bucket without limits is suspended until %s", until)
	}
	other := m.post(t.Context(), "/v1/messages", `{"model":"claude-haiku-4-5","max_tokens":9}`)
	m.expectStatus(t, 200, other)
}
