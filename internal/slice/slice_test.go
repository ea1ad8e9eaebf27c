package slice

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

const method = "things.list"

var limit = quota.Limit{Bucket: "default", Units: 1000, Window: quota.Sliding(24 * time.Hour)}

// host is a budget with a slice of 10 units, in a file of its own or of several.
func host(l quota.Ledger, path, url string, log *slog.Logger) (*quota.Budget, *Slice) {
	s := &Slice{Path: path, Ledger: l, URL: url, Credential: "key1",
		Units:  []quota.Cost{{Bucket: "default", Units: 10}},
		Limits: []quota.Limit{limit}, Note: "slice", Log: log}
	return &quota.Budget{Ledger: l, Credential: "key1", Limits: s.Limits,
		Prices: map[string][]quota.Cost{method: {{Bucket: "default", Units: 1}}},
		Open:   []string{method}, Slice: s, Log: log}, s
}

func open(t *testing.T, url string) quota.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// spend makes a call, and reports whether it passed and was metered.
func spend(t *testing.T, b *quota.Budget) (passed, metered bool) {
	t.Helper()
	d, err := b.Charge(t.Context(), quota.Call{Method: method})
	if err != nil && !errors.Is(err, quota.ErrUnreachable) {
		t.Fatal(err)
	}
	return err == nil && d.Allowed, !d.Unmetered
}

// standing is what the ledger has used and held.
func standing(t *testing.T, l quota.Ledger) (used, held int64) {
	t.Helper()
	u, err := l.Usage(t.Context(), "key1", []quota.Limit{limit})
	if err != nil {
		t.Fatal(err)
	}
	return u.Buckets[0].Limits[0].Used, u.Buckets[0].Held
}

func check(t *testing.T, l quota.Ledger, used, held int64) {
	t.Helper()
	if u, h := standing(t, l); u != used || h != held {
		t.Errorf("%d used, %d held; want %d and %d", u, h, used, held)
	}
	found, err := l.(quota.Checker).CheckBucket(t.Context(), "key1", "default", false)
	if err != nil || len(found) > 0 {
		t.Errorf("found %+v, %v", found, err)
	}
}

// Without the ledger exactly the slice can be spent. Afterwards the ledger has it all, at the times
// at which it was spent, and there is a whole slice again.
func TestOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{AOF: true})
	l := open(t, s.URL())
	var log strings.Builder
	b, _ := host(l, filepath.Join(t.TempDir(), "slices.db"), s.URL(),
		slog.New(slog.NewTextHandler(&log, nil)))
	spend(t, b)
	check(t, l, 1, 10)

	s.Kill()
	for i := range 12 {
		if passed, metered := spend(t, b); passed != (i < 10) || passed && metered {
			t.Errorf("call %d without the ledger: passed %v, metered %v", i, passed, metered)
		}
	}
	_, err := b.Charge(t.Context(), quota.Call{Method: method})
	if err == nil || !strings.HasSuffix(err.Error(), "; the slice leased for that is spent") {
		t.Errorf("says %v", err)
	}
	ended := time.Now()
	s.Restart(t)
	for passed := false; !passed; { // the client needs a moment to find the server
		var metered bool
		passed, metered = spend(t, b)
		passed = passed && metered
	}
	check(t, l, 12, 10)
	entries, err := l.Entries(t.Context(), quota.Query{Credential: "key1", Bucket: "default"})
	if err != nil || len(entries) != 12 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for i, e := range entries {
		journal := i >= 1 && i <= 10
		if (e.Labels[quota.LabelSource] == "journal") != journal ||
			journal && (e.At.After(ended) || e.Labels[quota.LabelMethod] != method) {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	s.Kill()
	for i := range 11 { // the slice is whole again
		if passed, _ := spend(t, b); passed != (i < 10) {
			t.Errorf("call %d of the second outage: passed %v", i, passed)
		}
	}
	if !strings.Contains(log.String(), "call is paid from the slice leased for that") ||
		!strings.Contains(log.String(), "entries=10") {
		t.Errorf("log: %s", &log)
	}
}

// A process that dies while it posts the journal has the next one do it again: nothing is recorded
// twice, and nothing is lost.
func TestPostedOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{AOF: true})
	l := open(t, s.URL())
	path := filepath.Join(t.TempDir(), "slices.db")
	b, first := host(l, path, s.URL(), slog.New(slog.DiscardHandler))
	spend(t, b)
	for i := range 4 {
		c := quota.Charge{ID: quota.NewID(time.Now()), Credential: "key1",
			Costs: []quota.Cost{{Bucket: "default", Units: 2}}}
		if _, err := first.Spend(t.Context(), c); err != nil {
			t.Fatal(i, err)
		}
	}
	db, err := first.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := first.standing(t.Context(), db)
	for _, line := range lines[:3] { // posted, and not yet taken from the journal
		err = errors.Join(err, first.postLine(t.Context(), line, line.at.wall))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	_, second := host(l, path, s.URL(), slog.New(slog.DiscardHandler))
	second.Reached(t.Context())
	check(t, l, 9, 10)
}

// A lease that has expired is not spent, and is booked as used until its host is back.
func TestExpired(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{AOF: true, Clock: true})
	l := open(t, s.URL())
	b, first := host(l, filepath.Join(t.TempDir(), "slices.db"), s.URL(),
		slog.New(slog.DiscardHandler))
	now := time.Now()
	first.clock = func() moment { return moment{wall: now} }
	s.SetNow(t, now)
	spend(t, b)
	c := quota.Charge{ID: quota.NewID(now), Credential: "key1",
		Costs: []quota.Cost{{Bucket: "default", Units: 3}}}
	if _, err := first.Spend(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	now = now.Add(ttl - margin + time.Second)
	if _, err := first.Spend(t.Context(), c); !errors.Is(err, errExpired) {
		t.Errorf("just before its end: %v", err)
	}
	now = now.Add(margin)
	s.SetNow(t, now)
	check(t, l, 10, 0) // the call of 25 hours ago has left the window, the lease has lapsed
	spend(t, b)
	check(t, l, 1, 10) // the three units of the journal were spent 25 hours ago, too
}

// Where the ledger was never reached there is no slice; where it was, the lack of one lets nothing
// pass.
func TestNone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "slices.db")
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	b, first := host(l, path, s.URL(), slog.New(slog.DiscardHandler))
	b.Slice = nil
	for range 995 { // too few are left for a slice
		spend(t, b)
	}
	c := quota.Charge{ID: quota.NewID(time.Now()), Credential: "key1",
		Costs: []quota.Cost{{Bucket: "default", Units: 1}}}
	if _, err := first.Spend(t.Context(), c); !errors.Is(err, quota.ErrNoSlice) {
		t.Errorf("before the ledger was reached: %v", err)
	}
	first.Reached(t.Context())
	if _, err := first.Spend(t.Context(), c); !errors.Is(err, errBetween) {
		t.Errorf("with too few units left: %v", err)
	}
	check(t, l, 995, 0)
}

const childOf = "SLICE_TEST_URL"

// TestMain lets the binary stand for a process on a host of its own: it calls without end, prints a
// line for each call that passed, and stops once its input has ended and the ledger has answered.
func TestMain(m *testing.M) {
	url := os.Getenv(childOf)
	if url == "" {
		os.Exit(m.Run())
	}
	if err := child(url, os.Getenv("SLICE_TEST_PATH")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(url, path string) error {
	ctx := context.Background()
	l, err := ledger.Open(ctx, url)
	if err != nil {
		return err
	}
	defer l.Close()
	b, _ := host(l, path, url, slog.New(slog.DiscardHandler))
	var stop atomic.Bool
	go func() { io.Copy(io.Discard, os.Stdin); stop.Store(true) }()
	for {
		d, err := b.Charge(ctx, quota.Call{Method: method})
		switch {
		case err == nil && d.Allowed && d.Unmetered:
			fmt.Println("unmetered")
		case err == nil && d.Allowed:
			fmt.Println("metered")
		case err == nil:
			fmt.Println("denied")
		default:
			fmt.Println("refused")
		}
		if stop.Load() && err == nil && !d.Unmetered {
			return nil
		}
		time.Sleep(10 * time.Millisecond) // a call takes a while
	}
}

// Twenty processes on ten hosts lose the ledger: all of them together never spend more than the
// limit, and once it is back it has every call that passed.
func TestTwentyProcesses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{AOF: true})
	l := open(t, s.URL())
	dir := t.TempDir()
	var mu sync.Mutex
	told, refusing := map[string]int{}, map[int]bool{}
	var children []*osexec.Cmd
	var inputs []io.Closer
	var all sync.WaitGroup
	for i := range 20 {
		c := osexec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), childOf+"="+s.URL(),
			fmt.Sprintf("SLICE_TEST_PATH=%s/host%d/slices.db", dir, i%10))
		c.Stderr = os.Stderr
		in, err := c.StdinPipe()
		out, err2 := c.StdoutPipe()
		if err := errors.Join(err, err2, c.Start()); err != nil {
			t.Fatal(err)
		}
		children, inputs = append(children, c), append(inputs, in)
		all.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				mu.Lock()
				told[lines.Text()]++
				refusing[i] = lines.Text() == "refused"
				mu.Unlock()
			}
		})
	}
	await := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
			mu.Lock()
			ok := done()
			mu.Unlock()
			if ok {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %v", what, told)
			}
		}
	}
	await("200 calls", func() bool { return told["metered"] >= 200 })
	s.Kill()
	await("slices that are spent", func() bool {
		n := 0
		for _, refuses := range refusing {
			if refuses {
				n++
			}
		}
		return n == 20
	})
	mu.Lock()
	if told["unmetered"] == 0 || told["unmetered"] > 10*10 {
		t.Errorf("%d calls passed without the ledger, of 10 slices of 10", told["unmetered"])
	}
	mu.Unlock()
	s.Restart(t)
	for _, in := range inputs {
		in.Close()
	}
	for _, c := range children {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	// A charge whose answer was lost with the server may be in the ledger besides, and so may a
	// lease, which is given back the next time.
	passed := int64(told["metered"] + told["unmetered"])
	used, held := standing(t, l)
	if passed > limit.Units || used < passed || used > passed+20 || held > 2*10*10 {
		t.Errorf("%d calls passed, the ledger has %d used and %d held: %v", passed, used, held,
			told)
	}
	check(t, l, used, held)
}
