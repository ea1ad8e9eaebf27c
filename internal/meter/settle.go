package meter

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

type ending int

const (
	complete ending = iota
	broken          // the upstream ended it early
	unread          // we stopped reading
)

// patience is how long the caller waits for a booking.
const patience = 250 * time.Millisecond

// booking limits the attempts to record something in the ledger.
var booking = quota.Patience{Total: 2 * time.Minute, Attempt: settleTime}

// begin returns the response to the caller. Its body is observed while the caller reads it.
func (e *exchange) begin(resp *http.Response) (*http.Response, error) {
	e.reach(answered)
	resp.Request = e.r // because the request that was sent contains the key
	e.observation = e.quote.Observe(resp.StatusCode, resp.Header)
	e.await(resp)
	// Read the headers of a success while the call is still held: some upstreams count the maximum
	// of each call in flight, as the ledger does until the settlement. A refused call is not
	// counted, so its headers are read after the settlement.
	if resp.StatusCode < 400 {
		e.early = e.observation.Early()
		e.teach(e.early)
	}
	isJSON := strings.Contains(resp.Header.Get("Content-Type"), "json")
	switch {
	case resp.StatusCode >= 400 && e.r.Method != http.MethodHead:
		body, err := errorBody(resp, e.key)
		e.observe(body)
		e.end(complete)
		if err != nil {
			return nil, err
		}
	case isJSON && (e.lines != nil || e.quote.Async()): // it names a file, or a call that goes on
		if err := e.readFirst(resp); err != nil {
			return nil, err
		}
	case e.r.Method == http.MethodHead || resp.Body == http.NoBody:
		e.end(complete)
	default:
		resp.Body = &answer{body: resp.Body, exchange: e}
	}
	e.gate.markSession(e.r, resp, e.part)
	return resp, nil
}

// teach learns from a response to a held or charged call.
func (e *exchange) teach(lessons []costs.Lesson) {
	if len(lessons) == 0 || e.gate.authorized(e.r) {
		return
	}
	e.book(func(ctx context.Context) error {
		e.gate.learn(ctx, e.decision, e.decision, lessons)
		return nil
	})
}

// late returns the lessons that were not learned before the call was settled.
func (e *exchange) late(lessons []costs.Lesson) []costs.Lesson {
	return slices.DeleteFunc(slices.Clone(lessons), func(l costs.Lesson) bool {
		return slices.Contains(e.early, l)
	})
}

// end decides what the call used, books it, and learns what the response reports about limits.
func (e *exchange) end(how ending) {
	t := e.gate
	e.reach(settled)
	if how != complete {
		e.observation.Cut()
	}
	out := e.observation.Close()
	for _, u := range out.Unlisted {
		t.warnUnlisted(e.call.Method, u)
	}
	if how == complete {
		t.warnMissing(e.call.Method, out.Missing)
		if len(out.Unread) > 0 {
			t.warnOnce("unread "+e.call.Method, "cannot read the rate-limit values of a response: "+
				"ignoring them", "method", e.call.Method, "unread", strings.Join(out.Unread, ", "))
		}
		// A user's token may belong to another project, with its own quota.
		if !t.authorized(e.r) {
			t.refused(e.ctx, e.decision, out.Refusal)
		}
	}
	switch {
	case how == complete && out.Pending != "":
		e.note(out.Pending)
		fallthrough
	case e.quote.Known:
		e.teach(e.late(out.Lessons))
	case how == unread:
		e.lapses("the answer was not read to its end")
	default:
		e.settle(out.Costs, e.late(out.Lessons))
		if how == complete && len(out.Missing) == 0 && out.Refusal == nil {
			for _, c := range out.Costs {
				name := sampled{e.call.Method, c.Bucket, e.quote.Priced}
				e.gate.samples.sampleOf(name).add(max(0, c.Units-e.quote.Certain[c.Bucket]))
			}
		}
	}
}

// lapses leaves the hold to lapse, counts the call's maximum as charged, and logs why, unless it is
// "". It frees the call's place in a limit on concurrent calls at once.
func (e *exchange) lapses(why string) {
	costs, places := slices.Clone(e.quote.Costs), 0
	for i, c := range costs {
		costs[i].Units, costs[i].Most = max(c.Units, c.Most), 0
		if e.gate.Budget.InFlight(c) {
			places++
		}
		if quota.OnlyConcurrent(e.gate.Budget.LimitsOn(c.Bucket)) {
			costs[i].Units = 0
		}
	}
	charged := e.quote.Lapse != quota.LapseRelease && !e.decision.Unmetered
	booked := charged && places > 0
	switch {
	case why == "":
	case booked:
		e.log().Warn(why + ": booked the maximum of the call")
	default:
		e.log().Warn(why + ": the units set aside for the call stay so until they lapse")
	}
	switch {
	case booked:
		e.settle(costs, nil)
	case charged:
		tallyOf(e.ctx).book(quota.UnitsOf(costs))
	}
}

// settle books the usage of the call. Every attempt books the same line of the journal.
func (e *exchange) settle(costs []quota.Cost, lessons []costs.Lesson) {
	call := e.call
	call.Costs = costs
	line := e.gate.Budget.NewBooking(e.decision, call, e.quote.Lapse)
	e.book(func(ctx context.Context) error {
		after, err := e.gate.Budget.Book(ctx, line)
		if err != nil {
			return err
		}
		if !e.decision.Unmetered {
			tallyOf(e.ctx).correct(e.decision.Units, after.Units)
			tallyOf(e.ctx).book(after.Units)
		}
		if !e.gate.authorized(e.r) {
			e.gate.learn(ctx, e.decision, after, lessons)
		}
		return nil
	})
}

// book calls record and waits a moment for it. While the ledger is unreachable or full, book
// retries in the background for a while. It then leaves the journal's line to the next process, and
// the hold lapses.
func (e *exchange) book(record func(context.Context) error) {
	done, booked := make(chan struct{}), e.opened()
	go func() {
		defer booked()
		defer close(done)
		ctx := context.WithoutCancel(e.ctx)
		if err := booking.Retry(ctx, record); err != nil {
			e.log().Error("cannot book what a call used: the units set aside for it will lapse",
				"error", err)
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// warnOnce logs a warning, unless one about the subject was logged before.
func (t *Transport) warnOnce(subject, text string, args ...any) {
	if _, logged := t.warned.LoadOrStore(subject, true); !logged {
		t.Log.Warn(text, args...)
	}
}

// warnMissing logs, once for each method, that its responses lack a path of the price list. Such
// calls are charged their maximum.
func (t *Transport) warnMissing(method string, paths []string) {
	if len(paths) == 0 {
		return
	}
	if t.Missed != nil {
		t.Missed(method)
	}
	t.warnOnce("missing "+method, "the response does not report what the call used: charging the "+
		"maximum for this and similar calls", "method", method,
		"missing", strings.Join(paths, ", "))
}

// maxUnlisted is the maximum number of names to log, because callers can invent any number.
const maxUnlisted = 100

// warnUnlisted logs, once for each value, that a table has no row for a fact such as the model. It
// returns the label for such calls: the value, or "others" beyond maxUnlisted.
func (t *Transport) warnUnlisted(method string, u costs.Unlisted) string {
	key := "unlisted " + u.Table + " " + u.Value
	if _, logged := t.warned.Load(key); !logged {
		if t.unlisted.Add(1) > maxUnlisted {
			return "others"
		}
		t.warnOnce(key, "the price list has no row for a call; another row sets its price, perhaps "+
			"far too high or too low", "method", method, u.Fact, u.Value, "table", u.Table)
	}
	return u.Name()
}
