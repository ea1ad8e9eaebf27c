package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// TestLostAnswers: a call that the ledger recorded although its answer was lost is not recorded
// again, and what it holds for one is given back.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	e := open(t)
	e.breaker.LoseNext()
	d, err := e.spend("", 1)
	if err != nil || !d.Unmetered {
		t.Fatal(d, err)
	}
	e.breaker.LoseNext()
	if d := e.hold(8); !d.Unmetered {
		t.Fatal(d)
	}
	e.post()
	e.expectUsage(9, 0)
}

// TestLostAnswerOfAHold: a call whose hold the ledger made although its answer was lost is booked
// once, with what it used, whether the hold still stands or has lapsed into a charge.
func TestLostAnswerOfAHold(t *testing.T) {
	t.Parallel()
	const notSent = -1
	for _, ttl := range []time.Duration{time.Hour, time.Millisecond} {
		for _, c := range []struct{ used, unheld int64 }{
			{notSent, 0}, {0, 0}, {0, 2}, {3, 0}, {8, 0}, {13, 0}, {13, 2},
		} {
			t.Run(fmt.Sprint(ttl, c), func(t *testing.T) {
				t.Parallel()
				e := open(t)
				e.Limits = append(e.Limits, quota.Limit{Bucket: "search", Units: 9,
					Window: limit.Window})
				e.must(e.GiveBack(t.Context(), e.hold(1), quota.Call{})) // so that the scripts are known
				e.ttl = ttl
				e.breaker.LoseNext()
				d := e.hold(8)
				if !d.Unmetered {
					t.Fatal(d)
				}
				if c.used == notSent {
					e.must(e.GiveBack(t.Context(), d, quota.Call{}))
				} else {
					line := e.used(d, c.used)
					line.Call.Costs = append(line.Call.Costs, quota.Cost{Bucket: "search",
						Units: c.unheld})
					_, err := e.Book(t.Context(), line)
					e.must(err)
				}
				if ttl < time.Second {
					e.gone()
				}
				lines, err := e.Budget.Journal.Lines(t.Context())
				e.must(err)
				e.post()
				for _, l := range lines { // as if it had died before it removed them
					_, _, err := e.Budget.Journal.Spend(t.Context(), l, 0)
					e.must(err)
				}
				e.post()
				e.expectUsage(max(c.used, 0), 0)
				search, err := e.BucketUsage(t.Context(), "search")
				e.must(err)
				if search.Limits[0].Used != c.unheld {
					t.Errorf("%d units of search, want %d", search.Limits[0].Used, c.unheld)
				}
			})
		}
	}
}

// TestLostAnswerOfACancelledCharge: a charge that the ledger made although its answer was lost is
// cancelled, if the call was not sent.
func TestLostAnswerOfACancelledCharge(t *testing.T) {
	t.Parallel()
	e := open(t)
	_, err := e.spend("", 1)
	e.must(err)
	e.breaker.LoseNext()
	_, cancel, err := e.Spend(t.Context(), quota.Call{Method: method, Count: 4, Key: "a"})
	e.must(err)
	e.must(cancel(t.Context()))
	e.post()
	e.expectUsage(1, 0)
	if d, err := e.spend("a", 4); err != nil || d.Replayed {
		t.Errorf("the key of a cancelled call: %+v, %v", d, err)
	}
}

// TestGiveBackLate: the hold of a call that was not sent is given back although it has lapsed. A
// hold that was settled stays so.
func TestGiveBackLate(t *testing.T) {
	t.Parallel()
	for settled, want := range map[bool]int64{false: 0, true: 3} {
		e := open(t)
		e.ttl = time.Millisecond
		d := e.hold(8)
		e.gone()
		if settled {
			_, err := e.Settle(t.Context(), d.Reservation, e.used(d, 3).Call)
			e.must(err)
		}
		for range 2 {
			e.must(e.GiveBack(t.Context(), d, quota.Call{}))
		}
		e.expectUsage(want, 0)
	}
}

// TestBookingOfALostHoldIsLost: the hold is lost, and so is the answer to its booking.
func TestBookingOfALostHoldIsLost(t *testing.T) {
	t.Parallel()
	e := open(t)
	d := e.hold(8)
	_, err := e.Release(t.Context(), d.Reservation)
	e.must(err)
	line := e.used(d, 5)
	_, err = e.Book(t.Context(), line) // so that the scripts are known
	e.must(err)
	d2 := e.hold(8)
	_, err = e.Release(t.Context(), d2.Reservation)
	e.must(err)
	second, ran := e.used(d2, 5), e.breaker.Ran()
	for err == nil && e.breaker.Ran() == ran { // the settlement finds nothing, the booking is made
		go func() {
			for e.breaker.Ran() == ran {
				time.Sleep(10 * time.Microsecond)
			}
			e.breaker.LoseNext()
		}()
		_, err = e.Book(t.Context(), second)
	}
	e.must(e.Budget.Journal.Keep(t.Context(), second))
	e.post()
	e.expectUsage(10, 0)
}

// gone waits until nothing is held: a hold of a short time to live has lapsed.
func (e *env) gone() {
	e.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		set, err := e.Ledger.Reservations(e.Context(), "key1", "default")
		e.must(err)
		if len(set) == 0 {
			return
		}
	}
	e.Error("the hold does not lapse")
}

// TestDrawnCallOutlivesItsHold: a call that draws on a reservation is booked once, whether the
// reservation still stands when the call ends, has been given back, or has lapsed into a charge.
func TestDrawnCallOutlivesItsHold(t *testing.T) {
	for _, c := range []struct {
		end        string
		used, held int64
	}{{"stands", 5, 15}, {"given back", 5, 0}, {"lapsed", 5 + 12, 0}} {
		t.Run(c.end, func(t *testing.T) {
			t.Parallel()
			e := open(t)
			ttl := time.Hour
			if c.end == "lapsed" {
				ttl = 300 * time.Millisecond
			}
			of, err := e.Reserve(t.Context(), quota.ReserveRequest{TTL: ttl,
				Lapse: quota.LapseCharge, Call: quota.Call{Bucket: "default", Units: 20}})
			e.must(err)
			call := quota.Call{Method: method, Reservation: of.Reservation,
				Costs: []quota.Cost{{Bucket: "default", Units: 2, Most: 8}}}
			d, err := e.Hold(t.Context(), quota.ReserveRequest{TTL: time.Hour,
				Lapse: quota.LapseCharge, Call: call})
			e.must(err)
			e.expectUsage(8, 12)
			switch c.end {
			case "given back":
				_, err := e.Release(t.Context(), of.Reservation)
				e.must(err)
			case "lapsed":
				e.gone()
			}
			call.Costs = []quota.Cost{{Bucket: "default", Units: 5}}
			line := e.NewBooking(d, call, quota.LapseCharge)
			for range 2 {
				_, err = e.Book(t.Context(), line)
				e.must(err)
			}
			e.expectUsage(c.used, c.held)
		})
	}
}

// empty restarts the server without its data.
func (e *env) empty() {
	e.Helper()
	fresh := redistest.Start(e.T, redistest.Options{})
	e.breaker.Forward(fresh.Addr)
	e.server.Kill()
	e.server = fresh
	e.answers()
}

// answers waits until the client has found the server again.
func (e *env) answers() {
	for _, err := e.Ledger.Time(e.Context()); err != nil; {
		_, err = e.Ledger.Time(e.Context())
	}
}
