package slice

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// away is a host that has its slice, and a server.
func away(t *testing.T, opts redistest.Options) (*redistest.Server, *quota.Budget, *Slice) {
	t.Helper()
	opts.AOF = true
	s := redistest.Start(t, opts)
	l := open(t, s.URL())
	b, of := host(l, filepath.Join(t.TempDir(), "slices.db"), s.URL(),
		slog.New(slog.DiscardHandler))
	spend(t, b)
	check(t, l, 1, 10)
	return s, b, of
}

// back starts the server again, and waits until the client has found it.
func back(t *testing.T, s *redistest.Server, l quota.Ledger) {
	t.Helper()
	s.Restart(t)
	for {
		if _, err := l.Time(t.Context()); err == nil {
			return
		} else if t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func chargeOf(units int64) quota.Charge {
	return quota.Charge{ID: quota.NewID(time.Now()), Credential: "key1",
		Costs: []quota.Cost{{Bucket: "default", Units: units}}}
}

func pays(t *testing.T, s *Slice, c quota.Charge, want error) {
	t.Helper()
	if _, err := s.Spend(t.Context(), c); !errors.Is(err, want) {
		t.Errorf("paying %d units: %v, want %v", c.Costs[0].Units, err, want)
	}
}

// Whatever is done to the clock of a host, its slice is not spent after its lease, and what was
// spent is recorded at the time at which it was.
func TestClockSet(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{AOF: true, Clock: true})
	b, of := host(open(t, server.URL()), filepath.Join(t.TempDir(), "slices.db"), server.URL(),
		slog.New(slog.DiscardHandler))
	wall, boot, up := time.Now(), "one", 100*time.Hour
	of.clock = func() moment { return moment{wall, boot, up} }
	pass := func(d time.Duration) { wall, up = wall.Add(d), up+d }
	start := wall
	server.SetNow(t, start)
	spend(t, b)

	pass(time.Hour)
	wall = wall.Add(-30 * time.Hour) // set back
	pays(t, of, chargeOf(1), nil)
	pass(20 * time.Hour)
	pays(t, of, chargeOf(2), nil)
	wall = wall.Add(48 * time.Hour) // set ahead
	pays(t, of, chargeOf(1), errExpired)
	wall = wall.Add(-48 * time.Hour)
	pass(4 * time.Hour) // five minutes are left
	pays(t, of, chargeOf(1), errExpired)
	boot, up = "two", time.Minute
	pays(t, of, chargeOf(1), errClock)
	boot, up = "one", 125*time.Hour

	server.SetNow(t, start.Add(25*time.Hour-time.Minute))
	of.Reached(t.Context())
	entries, err := b.Ledger.Entries(t.Context(), quota.Query{Credential: "key1", Bucket: "default",
		Since: start.Add(time.Minute)})
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	for i, hours := range []time.Duration{1, 21} {
		if at := entries[i].At.Sub(start); (at - hours*time.Hour).Abs() > 2*time.Minute {
			t.Errorf("%d units: recorded %v after the start, want %d h",
				entries[i].Units, at, hours)
		}
	}
}

// A charge that the ledger has recorded although its answer was lost is not recorded again.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{AOF: true})
	breaker := redistest.NewBreaker(t)
	breaker.Forward(server.Addr)
	l := open(t, "redis://"+breaker.Addr+"/0")
	b, _ := host(l, filepath.Join(t.TempDir(), "slices.db"), server.URL(),
		slog.New(slog.DiscardHandler))
	spend(t, b)
	breaker.LoseNext()
	if passed, metered := spend(t, b); !passed || metered {
		t.Fatalf("passed %v, metered %v", passed, metered)
	}
	breaker.LoseNext() // what is held for a call must not lapse into a second charge either
	d, err := b.Hold(t.Context(), quota.ReserveRequest{Call: quota.Call{Method: method, Count: 2},
		TTL: time.Minute, Lapse: quota.LapseCharge})
	if err != nil || !d.Unmetered || d.Entry == "" {
		t.Fatalf("%+v, %v", d, err)
	}
	spend(t, b)
	check(t, l, 5, 10)
}

// A call that never left takes nothing: the slice is whole again, and nothing is recorded.
func TestNeverLeft(t *testing.T) {
	t.Parallel()
	server, b, of := away(t, redistest.Options{})
	server.Kill()
	for range 2 {
		_, cancel, err := b.Spend(t.Context(), quota.Call{Method: method, Count: 10})
		if err != nil {
			t.Fatal(err)
		}
		if err := cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		d, err := b.Hold(t.Context(), quota.ReserveRequest{Call: quota.Call{Method: method},
			TTL: time.Minute})
		if err != nil || b.GiveBack(t.Context(), d, quota.Call{}) != nil {
			t.Fatal(d, err)
		}
	}
	if now, err := of.Standing(t.Context()); err != nil || now.Left["default"] != 10 ||
		now.Waiting != 0 {
		t.Errorf("%+v, %v", now, err)
	}
	d, _, err := b.Spend(t.Context(), quota.Call{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	back(t, server, b.Ledger)
	of.Reached(t.Context())
	check(t, b.Ledger, 2, 10)
	if err := of.Cancel(t.Context(), d.Entry); !errors.Is(err, quota.ErrNoEntry) {
		t.Errorf("cancelled what is recorded: %v", err)
	}
}

// A call that is repeated with its key is paid once, and a key is not for two calls.
func TestKeyOfSlice(t *testing.T) {
	t.Parallel()
	_, _, of := away(t, redistest.Options{})
	for range 3 {
		c := chargeOf(4)
		c.Key = "nightly"
		pays(t, of, c, nil)
	}
	c := chargeOf(5)
	c.Key = "nightly"
	pays(t, of, c, quota.ErrKeyReused)
	if now, err := of.Standing(t.Context()); err != nil || now.Left["default"] != 6 {
		t.Errorf("%+v, %v", now, err)
	}
}

// TestLowered: if the limit is lowered after the lease, only the smaller slice may be spent, until
// the ledger answers and the slice is leased again.
func TestLowered(t *testing.T) {
	t.Parallel()
	_, b, of := away(t, redistest.Options{})
	pays(t, of, chargeOf(3), nil)
	of.Units = []quota.Cost{{Bucket: "default", Units: 4}}
	pays(t, of, chargeOf(2), errSpent)
	pays(t, of, chargeOf(1), nil)
	pays(t, of, chargeOf(1), errSpent)
	of.Reached(t.Context())
	check(t, b.Ledger, 5, 4)
	of.Units = []quota.Cost{{Bucket: "default", Units: 20}}
	of.next = time.Time{}
	of.Reached(t.Context())
	check(t, b.Ledger, 5, 20)
	of.Units = []quota.Cost{{Bucket: "other", Units: 20}}
	pays(t, of, chargeOf(1), errNotLeased)
}

// TestSuspended: a slice does not pay for a suspended bucket, whether the ledger recorded the
// suspension or the upstream reported it later, which is then written to the ledger.
func TestSuspended(t *testing.T) {
	t.Parallel()
	server, b, of := away(t, redistest.Options{})
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	server.Kill()
	pays(t, of, chargeOf(1), nil)
	if err := b.SuspendUntil(t.Context(), "default", until, "quotaExceeded"); err != nil {
		t.Fatal(err)
	}
	pays(t, of, chargeOf(1), errSuspended)
	back(t, server, b.Ledger)
	of.Reached(t.Context())
	u, err := b.Ledger.Usage(t.Context(), "key1", []quota.Limit{limit})
	if err != nil || !u.Buckets[0].SuspendedUntil.Equal(until) {
		t.Errorf("%+v, %v", u, err)
	}
	if err := b.Resume(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	db, err := of.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := of.suspend(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	of.next = time.Time{}
	of.Reached(t.Context())
	pays(t, of, chargeOf(1), nil)
}

// A lease that is granted after another process has given it up is not spent, and does not stay in
// the ledger.
func TestGrantedTooLate(t *testing.T) {
	t.Parallel()
	_, b, of := away(t, redistest.Options{})
	db, err := of.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	late := lease{reservation: quota.ReservationID(quota.NewID(time.Now()), "default")}
	err = errors.Join(of.ask(t.Context(), db, late, of.now()), of.giveBack(t.Context(), db, late))
	if err == nil {
		_, err = b.Ledger.Reserve(t.Context(), quota.Reserve{Credential: "key1",
			ID: late.reservation, Costs: of.Units, Limits: of.Limits, TTL: ttl})
	}
	if err = errors.Join(err, of.confirm(t.Context(), db, late)); err != nil {
		t.Fatal(err)
	}
	check(t, b.Ledger, 1, 10)
}

// Where slice is configured, a host that has never reached the ledger lets nothing pass; and once
// the ledger has answered a process, nothing passes without a file either.
func TestClosed(t *testing.T) {
	t.Parallel()
	_, _, of := away(t, redistest.Options{})
	lost := &Slice{Path: filepath.Join(t.TempDir(), "slices.db"), Units: of.Units, Closed: true}
	pays(t, lost, chargeOf(1), errNever)
	lost.Closed = false
	pays(t, lost, chargeOf(1), quota.ErrNoSlice)
	of.Path = filepath.Join(t.TempDir(), "slices.db")
	pays(t, of, chargeOf(1), errBetween)
	of.Path = ""
	pays(t, of, chargeOf(1), errNoFolder)
}

// A process that dies anywhere between posting a line and forgetting it, or while another one posts
// the same, has it recorded once.
func TestPostedTwice(t *testing.T) {
	t.Parallel()
	_, b, of := away(t, redistest.Options{})
	pays(t, of, chargeOf(2), nil)
	db, err := of.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	lines, _, err := of.standing(t.Context(), db)
	for i := range 3 { // each by the ledger's clock at the time
		err = errors.Join(err, of.postLine(t.Context(), lines[0],
			time.Now().Add(-time.Duration(i)*time.Second)))
	}
	if err != nil {
		t.Fatal(err)
	}
	of.Reached(t.Context())
	check(t, b.Ledger, 3, 10)
}

// A file of an earlier version is spent only after its lease was extended.
func TestEarlierFile(t *testing.T) {
	t.Parallel()
	_, b, of := away(t, redistest.Options{})
	db, err := of.open(t.Context())
	if err == nil {
		err = asEarlier(t.Context(), db)
	}
	if err != nil {
		t.Fatal(err)
	}
	pays(t, of, chargeOf(1), errExpired)
	of.next = time.Time{}
	of.Reached(t.Context())
	pays(t, of, chargeOf(1), nil)
	check(t, b.Ledger, 1, 10)
}

func asEarlier(ctx context.Context, db *sqlite.DB) error {
	defer db.Close()
	return db.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE leases SET boot = '', up_at = 0, leased_at = 0`)
		return err
	})
}
