package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

const method = "things.list"

var limit = quota.Limit{Bucket: "default", Units: 1000, Window: quota.Sliding(24 * time.Hour)}

// host returns a budget with a journal at path; each unit of the method may pass 10 times.
func host(ctx context.Context, url, path string) (*quota.Budget, error) {
	l, err := ledger.Open(ctx, url)
	return &quota.Budget{Ledger: l, Credential: "key1", Limits: []quota.Limit{limit},
		Prices: map[string][]quota.Cost{method: {{Bucket: "default", Units: 1}}},
		Open:   []string{method}, AtMost: 10, Log: slog.New(slog.DiscardHandler),
		Journal: &ledger.Journal{Path: path, Ledger: url, Credential: "key1"}}, err
}

// env is a budget on a Redis server behind a breaker.
type env struct {
	*testing.T
	*quota.Budget
	ttl     time.Duration // of holds
	server  *redistest.Server
	breaker *redistest.Breaker
}

func open(t *testing.T) *env {
	t.Helper()
	e := &env{T: t, ttl: time.Hour, server: redistest.Start(t, redistest.Options{AOF: true}),
		breaker: redistest.NewBreaker(t)}
	e.breaker.Forward(e.server.Addr)
	var err error
	e.Budget, err = host(t.Context(), "redis://"+e.breaker.Addr+"/0",
		filepath.Join(t.TempDir(), "journal.db"))
	e.must(err)
	t.Cleanup(func() {
		e.Budget.Ledger.(*ledger.Ledger).Close()
		e.Budget.Journal.(*ledger.Journal).Close()
	})
	return e
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// away runs fn while the ledger cannot be reached.
func (e *env) away(fn func()) {
	e.Helper()
	nowhere := "127.0.0.1:1"
	e.breaker.Forward(nowhere)
	e.server.Kill()
	fn()
	e.server.Restart(e.T)
	e.breaker.Forward(e.server.Addr)
}

// post posts the journal, once the client has found the server again.
func (e *env) post() {
	e.Helper()
	err := e.Post(e.Context())
	for deadline := time.Now().Add(time.Minute); quota.IsAway(err) && time.Now().Before(deadline); {
		err = e.Post(e.Context())
	}
	e.must(err)
	e.expectLines(0)
}

func (e *env) expectLines(want int) {
	e.Helper()
	lines, err := e.Budget.Journal.Lines(e.Context())
	if err != nil || len(lines) != want {
		e.Errorf("%d lines in the journal, want %d: %+v, %v", len(lines), want, lines, err)
	}
}

// expectUsage checks the units used and held in the ledger.
func (e *env) expectUsage(used, held int64) {
	e.Helper()
	u, err := e.Usage(e.Context())
	e.must(err)
	if b := u.Buckets[0]; b.Limits[0].Used != used || b.Held != held {
		e.Errorf("%d used, %d held; want %d and %d", b.Limits[0].Used, b.Held, used, held)
	}
}

func (e *env) spend(key string, count int64) (quota.Decision, error) {
	return e.Charge(e.Context(), quota.Call{Method: method, Key: key, Count: count})
}

func (e *env) hold(units int64) quota.Decision { return e.holdWith("", units) }

func (e *env) holdWith(key string, units int64) quota.Decision {
	e.Helper()
	d, err := e.Hold(e.Context(), quota.ReserveRequest{TTL: e.ttl, Lapse: quota.LapseCharge,
		Call: quota.Call{Key: key, Method: method,
			Costs: []quota.Cost{{Bucket: "default", Units: units}}}})
	e.must(err)
	return d
}

func (e *env) used(d quota.Decision, units int64) quota.Booking {
	return e.NewBooking(d, quota.Call{Method: method,
		Costs: []quota.Cost{{Bucket: "default", Units: units}}}, quota.LapseCharge)
}

// TestOutage: without the ledger exactly at_most can be spent. Afterwards the ledger has each of
// these charges once.
func TestOutage(t *testing.T) {
	t.Parallel()
	e := open(t)
	prices := e.Prices
	_, err := e.spend("", 1)
	e.must(err)
	e.away(func() {
		for i := range 12 {
			d, err := e.spend("", 1)
			if passes := i < 10; (err == nil) != passes || passes && (!d.Unmetered ||
				d.Remaining["default"] != int64(9-i)) || !passes && !errors.Is(err, quota.ErrOutageSpent) {
				t.Errorf("call %d without the ledger: %+v, %v", i, d, err)
			}
		}
		if _, err := e.Charge(t.Context(), quota.Call{Bucket: "default", Units: 1}); !quota.IsAway(err) {
			t.Errorf("another call: %v", err)
		}
		e.expectLines(10)
		e.Prices = nil // as of a method whose price is known only afterwards
		if o, err := e.Outage(t.Context()); err != nil || o.Waiting != 10 || len(o.Left) != 1 ||
			o.Left[0] != (quota.Cost{Bucket: "default"}) {
			t.Errorf("%+v, %v", o, err)
		}
	})
	e.Prices = prices
	e.Labels = quota.Labels{quota.LabelJob: "another"} // of the process that posts
	e.post()
	e.expectUsage(11, 0)
	entries, err := e.Ledger.Entries(t.Context(), quota.Query{Credential: "key1", Bucket: "default"})
	e.must(err)
	if last := entries[10]; last.Labels[quota.LabelSource] != "journal" ||
		last.Labels[quota.LabelMethod] != method || last.Labels[quota.LabelJob] != "" {
		t.Errorf("the labels are %v", last.Labels)
	}
	e.away(func() { // which is another outage
		_, err = e.spend("", 10)
		e.must(err)
	})
	e.post()
	e.expectUsage(21, 0)
}

// TestWithoutLedger has one story a row: what happens while the ledger is away, and what it has
// used when the journal is posted.
func TestWithoutLedger(t *testing.T) {
	const oneOrNone = -1
	for name, story := range map[string]struct {
		away  func(*env)
		lines int
		used  int64
	}{
		"a key pays once": {func(e *env) {
			for _, key := range []string{"a", "a", "b"} {
				_, err := e.spend(key, 2)
				e.must(err)
			}
			if _, err := e.spend("a", 3); !errors.Is(err, quota.ErrKeyReused) {
				e.Errorf("a key for another call: %v", err)
			}
		}, 2, 4},
		"a call that never left": {func(e *env) {
			_, cancel, err := e.Spend(e.Context(), quota.Call{Method: method})
			e.must(err)
			e.must(cancel(e.Context()))
			e.must(e.GiveBack(e.Context(), e.hold(5), quota.Call{}))
		}, oneOrNone, 0}, // one if the ledger may have made the charge before it was killed
		"a held call that used less": {func(e *env) {
			_, err := e.Book(e.Context(), e.used(e.hold(8), 3))
			e.must(err)
		}, 1, 3},
		"a held call that used more": {func(e *env) {
			_, err := e.Book(e.Context(), e.used(e.hold(8), 13))
			e.must(err)
		}, 1, 13},
		"a held call that used nothing": {func(e *env) {
			_, err := e.Book(e.Context(), e.used(e.hold(8), 0))
			e.must(err)
		}, 0, 0},
		"a held call of a part, under a limit across the parts": {func(e *env) {
			e.Unlimited, e.Split, e.Limits[0].Across = true, []string{"default"}, true
			part := func(units int64) quota.Call {
				return quota.Call{Method: method, Costs: []quota.Cost{{Bucket: "default/a", Units: units}}}
			}
			d, err := e.Hold(e.Context(), quota.ReserveRequest{TTL: e.ttl, Call: part(8)})
			e.must(err)
			_, err = e.Book(e.Context(), e.NewBooking(d, part(3), quota.LapseCharge))
			e.must(err)
		}, 1, 3},
		"more than at_most": {func(e *env) {
			if _, err := e.spend("", 11); !errors.Is(err, quota.ErrOutageSpent) {
				e.Errorf("11 of 10: %v", err)
			}
		}, 0, 0},
		"without at_most, no bound": {func(e *env) {
			e.AtMost = 0
			_, err := e.spend("", 500)
			e.must(err)
		}, 1, 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t)
			e.away(func() {
				story.away(e)
				if story.lines != oneOrNone {
					e.expectLines(story.lines)
				}
			})
			e.post()
			e.expectUsage(story.used, 0)
			if d, err := e.spend("a", 2); story.lines == 2 && (err != nil || !d.Replayed) {
				t.Errorf("a key of the journal pays again: %+v, %v", d, err)
			}
		})
	}
}

// TestBookedOnce has one fault a row on the way of a settlement. However often it is tried, by this
// process and by the one after a crash, what the call used is in the ledger once.
func TestBookedOnce(t *testing.T) {
	const held, truth = 8, 5
	release := func(e *env, d quota.Decision) {
		_, err := e.Release(e.Context(), d.Reservation)
		e.must(err)
	}
	for name, fault := range map[string]func(*env, quota.Decision){
		"none":                       func(*env, quota.Decision) {},
		"the answer is lost":         func(e *env, _ quota.Decision) { e.breaker.LoseNext() },
		"the hold is lost":           release,
		"the server came back empty": func(e *env, _ quota.Decision) { e.empty() },
		"it lapsed":                  func(e *env, _ quota.Decision) { e.gone() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t)
			if name == "it lapsed" {
				e.ttl = time.Millisecond
			}
			d := e.hold(held)
			line := e.used(d, truth)
			fault(e, d)
			_, err := e.Book(t.Context(), line)
			if lost := name == "the answer is lost"; (err != nil) != lost {
				t.Errorf("the first attempt: %v", err)
			} else if lost {
				e.expectLines(1)
			} else {
				e.expectLines(0)
			}
			e.must(e.Budget.Journal.Keep(t.Context(), line)) // as if it had died before it removed it
			e.post()
			e.expectUsage(truth, 0)
		})
	}
}

// TestSettledBehindAPage: the entry of a settlement whose answer was lost comes after more entries
// than one page of the log has.
func TestSettledBehindAPage(t *testing.T) {
	t.Parallel()
	const others = 2001
	e := open(t)
	e.Limits = []quota.Limit{{Bucket: "default", Units: 2 * others, Window: limit.Window}}
	line := e.used(e.hold(8), 5)
	for range others {
		_, err := e.spend("", 1)
		e.must(err)
	}
	e.breaker.LoseNext()
	if _, err := e.Book(t.Context(), line); err == nil {
		t.Error("the answer was not lost")
	}
	e.post()
	e.expectUsage(5+others, 0)
}

// onHost begins the name of a mix of calls while the ledger is away; the path of a journal follows.
const onHost = "journal "

// spendOnHost is a process of TestHostsTimesAtMost: it opens the ledger, waits for the end of its
// input, calls until nothing passes any more, and prints how many calls did.
func spendOnHost(url, path string) {
	b, err := host(context.Background(), url, path)
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	passed := 0
	for ; err == nil; passed++ {
		_, err = b.Charge(context.Background(), quota.Call{Method: method})
	}
	if !errors.Is(err, quota.ErrOutageSpent) {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Println(passed - 1)
}

// TestHostsTimesAtMost: nine processes on three hosts spend three times at_most together, and the
// ledger has all of it once each host has posted its journal.
func TestHostsTimesAtMost(t *testing.T) {
	t.Parallel()
	e := open(t)
	dir := t.TempDir()
	path := func(i int) string { return fmt.Sprintf("%s/host%d/journal.db", dir, i%3) }
	var children []*process
	for i := range 9 {
		children = append(children, startChild(t, e.server.URL(), onHost+path(i)))
	}
	passed := 0
	e.away(func() {
		for _, p := range children {
			p.start.Close()
		}
		for _, p := range children {
			var n int
			p.lines.Scan()
			_, err := fmt.Sscan(p.lines.Text(), &n)
			e.must(errors.Join(err, p.Wait()))
			if p.stderr.Len() > 0 {
				t.Error(p.stderr)
			}
			passed += n
		}
	})
	if passed != 3*10 {
		t.Errorf("%d calls passed on 3 hosts, want 10 on each", passed)
	}
	for i := range 3 {
		e.Budget.Journal = &ledger.Journal{Path: path(i), Ledger: e.server.URL(),
			Credential: "key1"}
		e.post()
	}
	e.expectUsage(30, 0)
}
