package meter

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// ending is how an answer ended.
type ending int

const (
	complete ending = iota
	broken          // the upstream ended it early
	unread          // we did
)

const (
	patience = 250 * time.Millisecond // that the caller waits for the ledger
	retried  = 2 * time.Minute        // that the ledger is asked again
	longest  = 5 * time.Second        // between two attempts
)

// end books what the call took, and learns what the answer says of the limits.
func (e *exchange) end(how ending) {
	t := e.gate
	if how != complete {
		e.seen.Cut()
	}
	out := e.seen.Close()
	for _, u := range out.Unlisted {
		t.tellUnlisted(e.call.Method, u)
	}
	if how == complete {
		e.report()
		t.tellMissing(e.call.Method, out.Missing)
		t.tellUnread(e.call.Method, out.Unread)
		// A user's token may be of another project, whose quota says nothing of ours.
		if !t.authorized(e.r) {
			t.refused(e.ctx, e.asked, out.Refusal)
		}
	}
	pending := how == complete && out.Pending != ""
	if pending && !e.asked.d.Unmetered {
		t.pendings.keep(out.Pending, e)
	}
	if e.quote.Known || e.asked.d.Unmetered || pending {
		e.teach(e.late(out.Lessons))
		return
	}
	if how == unread {
		e.lapses("the answer was not read to its end")
		return
	}
	took := out.Costs
	e.book(func(ctx context.Context) error { return e.settle(ctx, took, out) })
	if how == complete && len(out.Missing) == 0 && out.Refusal == nil {
		e.remember(took)
	}
}

// lapses leaves the hold to lapse, and counts the most that the call can take as charged: that is
// what a lapse books. It logs why, unless that is "".
//
// The call no longer counts against a limit on concurrent calls: its place is freed at once.
func (e *exchange) lapses(why string) {
	took, places := slices.Clone(e.quote.Costs), 0
	for i, c := range took {
		took[i].Units, took[i].Most = max(c.Units, c.Most), 0
		limits := e.gate.Budget.LimitsOn(c.Bucket)
		if slices.ContainsFunc(limits, ofPlaces) {
			places++
		}
		if quota.OnlyConcurrent(limits) {
			took[i].Units = 0
		}
	}
	charged := e.quote.Lapse != quota.LapseRelease && !e.asked.d.Unmetered
	booked := charged && places > 0 && e.call.Reservation == ""
	switch {
	case why == "":
	case booked:
		e.log().Warn(why + ": the most that the call can take is booked")
	default:
		e.log().Warn(why + ": what the call may take stays set aside until it lapses")
	}
	switch {
	case booked:
		e.book(func(ctx context.Context) error { return e.settle(ctx, took, costs.Outcome{}) })
	case charged:
		tallyOf(e.ctx).book(quota.UnitsOf(took))
	}
}

func ofPlaces(l quota.Limit) bool { return l.Window.Concurrent }

// settle books what the call took. Settling twice is the same as settling once.
func (e *exchange) settle(ctx context.Context, took []quota.Cost, out costs.Outcome) error {
	t, call := e.gate, e.call
	call.Costs = took
	after, err := t.Budget.SettleHold(ctx, e.asked.d, call, e.quote.Lapse)
	switch gone := errors.Is(err, quota.ErrNoReservation) && call.Reservation == ""; {
	case gone && e.tried && !e.lost && e.settlesOnce():
		e.log().Warn("the reservation is gone: an attempt whose answer was lost has settled it, " +
			"or the ledger has lost it")
		err, out.Lessons, e.doubt = nil, nil, true
	case gone:
		if !e.lost {
			e.log().Warn("the ledger has lost what was set aside for a call: what it took is " +
				"booked all the same")
		}
		e.lost = true
		after, err = t.Budget.BookLost(ctx, e.asked.d, call)
	}
	if err == nil && !e.lost && call.Reservation == "" { // of a drawn call, all is booked
		err = e.settleUnheld(ctx, took)
	}
	if err != nil {
		e.tried = e.tried || !errors.Is(err, quota.ErrNotExecuted)
		return err
	}
	tallyOf(e.ctx).correct(e.asked.d.Units, after.Units)
	tallyOf(e.ctx).book(after.Units)
	if !t.authorized(e.r) {
		t.learn(ctx, e.asked, after, e.late(out.Lessons))
	}
	return nil
}

// learnEarly learns from the headers of a success while the call is still held: some upstreams
// count there the most that each call in flight can take, and so does the ledger at that moment. A
// refused call never counted at the upstream, so its headers are read once it is settled.
func (e *exchange) learnEarly(status int) {
	if status < 400 {
		e.early = e.seen.Early()
		e.teach(e.early)
	}
}

// teach learns from a response to a call that is held, or was charged.
func (e *exchange) teach(lessons []costs.Lesson) {
	if len(lessons) == 0 || e.gate.authorized(e.r) {
		return
	}
	e.book(func(ctx context.Context) error {
		e.gate.learn(ctx, e.asked, e.asked.d, lessons)
		return nil
	})
}

// late returns the lessons that were not learned early.
func (e *exchange) late(lessons []costs.Lesson) []costs.Lesson {
	return slices.DeleteFunc(slices.Clone(lessons), func(l costs.Lesson) bool {
		return slices.Contains(e.early, l)
	})
}

// settleUnheld books what the call took from buckets in which it held nothing.
func (e *exchange) settleUnheld(ctx context.Context, took []quota.Cost) error {
	call := e.call
	call.Costs = slices.DeleteFunc(slices.Clone(took), func(c quota.Cost) bool {
		same := func(held quota.Cost) bool { return held.Bucket == c.Bucket }
		return c.Units == 0 || slices.ContainsFunc(e.call.Costs, same)
	})
	if len(call.Costs) == 0 {
		return nil
	}
	_, err := e.gate.Budget.BookLost(ctx, e.asked.d, call)
	return err
}

// settlesOnce reports whether the ledger keeps no answer to the settlement (quota.Settle).
func (e *exchange) settlesOnce() bool {
	return e.quote.Lapse == quota.LapseCharge && e.call.Reservation == ""
}

// book tells the ledger something. The caller waits a moment for it; when the ledger is away, or
// has no space left, it is asked again for a while, and then what is held is left to lapse.
func (e *exchange) book(tell func(context.Context) error) {
	done, booked := make(chan struct{}), e.opened()
	go func() {
		defer booked()
		defer close(done)
		if err := e.bookAll(tell, retried); err != nil {
			e.log().Error("cannot book what a call took: what is set aside for it lapses",
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

// log names the call, and where its units are set aside.
func (e *exchange) log() *slog.Logger {
	return e.gate.Log.With("method", e.call.Method, "reservation",
		cmp.Or(e.asked.d.Reservation, e.call.Reservation))
}

// bookAll retries tell for a while if the ledger cannot be reached.
func (e *exchange) bookAll(tell func(context.Context) error, during time.Duration) error {
	ctx := context.WithoutCancel(e.ctx)
	until := time.Now().Add(during)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, longest) {
		attempt, done := context.WithTimeout(ctx, settleTime)
		err := tell(attempt)
		done()
		passes := errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable) ||
			errors.Is(err, context.DeadlineExceeded)
		switch {
		case err == nil:
			return nil
		case !passes || time.Now().Add(wait).After(until):
			return err
		}
		e.log().Debug("cannot book what a call took, retrying", "error", err, "wait", wait)
		time.Sleep(wait)
	}
}

// tellMissing logs, once for each method, that its responses lack a path of the price list. Such a
// call is charged the most that it can take.
func (t *Transport) tellMissing(method string, paths []string) {
	if len(paths) == 0 {
		return
	}
	if t.Missed != nil {
		t.Missed(method)
	}
	if _, told := t.warned.LoadOrStore("missing "+method, true); !told {
		t.Log.Warn("the response does not report what the call took: charging the maximum for "+
			"this and similar calls", "method", method,
			"missing", strings.Join(paths, ", "))
	}
}

// mostUnlisted bounds the names that tellUnlisted logs, because callers can make up any number.
const mostUnlisted = 100

// tellUnlisted logs, once for each value, that a table has no row for a fact such as the model. It
// returns the label for such calls: the value's name, or "others" beyond the bound.
func (t *Transport) tellUnlisted(method string, u costs.Unlisted) string {
	key := "unlisted " + u.Table + " " + u.Value
	if _, told := t.warned.Load(key); told {
		return u.Name()
	}
	if t.unlisted.Load() >= mostUnlisted {
		return "others"
	}
	if _, told := t.warned.LoadOrStore(key, true); !told {
		t.unlisted.Add(1)
		t.Log.Warn("the price list has no row for a call; another row sets its price, perhaps far "+
			"too high or too low", "method", method, u.Fact, u.Value, "table", u.Table)
	}
	return u.Name()
}

// tellUnread logs, once for each method, the rate-limit values that cannot be read.
func (t *Transport) tellUnread(method string, unread []string) {
	if len(unread) == 0 {
		return
	}
	if _, told := t.warned.LoadOrStore("unread "+method, true); !told {
		t.Log.Warn("cannot read the rate-limit values of a response: ignoring them",
			"method", method, "unread", strings.Join(unread, ", "))
	}
}

// Open returns the number of calls whose usage is not booked yet: their requests are under way,
// their responses are read to the end, or the ledger has not answered.
func (t *Transport) Open() int { return int(t.open.Load()) }
