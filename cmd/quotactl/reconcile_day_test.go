package main

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"quotabudget/internal/bill"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// TestReconcileEveryHour simulates three days over the end of summer time, one of 25 hours. Some
// programs spend through the gate and some past it, some calls are never billed, and the meter is
// late. The ledger is corrected every hour. It never has less than the meter shows, and finally has
// each day's bill.
func TestReconcileEveryHour(t *testing.T) {
	t.Parallel()
	m := newMetered(t, "")
	now := time.Date(2026, 10, 31, 7, 0, 0, 0, time.UTC)
	m.Now, m.Cloud.Lag = func() time.Time { return now }, 7*time.Minute
	l, err := ledger.OpenFile(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	must(t, err)
	defer l.Close()
	l.Now = m.Now
	cfg, err := config.Load(t.Context(), m.config, os.Getenv)
	must(t, err)
	a := &app{cli.Common{Stdout: io.Discard, Stderr: io.Discard, Getenv: os.Getenv, Output: "json"}}
	cred := cfg.Credentials[0]
	g := &gate{cred.Budget(l, cfg.Table(cred), a.Logger()), l, cfg, cred}
	dice := rand.New(rand.NewPCG(1, 2))

	billed := map[string]int64{} // by day
	day := func(at time.Time) string {
		begin, _ := cfg.Table(cred).Reset("default").Bounds(at)
		return begin.UTC().Format(time.RFC3339)
	}
	use := func(units int64) {
		m.Use(now, "default", units)
		billed[day(now)] += units
	}
	flags := reconcileFlags{apply: true, days: 3, lag: 15 * time.Minute}
	for range 300 {
		now = now.Add(time.Duration(10+dice.IntN(10)) * time.Minute)
		spent := 1 + dice.Int64N(9)
		_, err := g.Charge(t.Context(), quota.Call{Bucket: "default", Units: spent})
		must(t, err)
		if dice.IntN(5) > 0 { // otherwise it was never billed
			use(spent)
		}
		if dice.IntN(4) == 0 {
			use(1 + dice.Int64N(20))
		}
		if dice.IntN(4) > 0 {
			continue
		}
		must(t, a.reconciled(t.Context(), g, flags))
		for _, d := range bill.Days(cfg.Table(cred).Reset("default"), now, 3, flags.lag,
			quota.Retention, true) {
			after, until := d.Span()
			ours, err := l.Between(t.Context(), "key1", "default", after, until)
			must(t, err)
			if theirs := m.Shown("default", d.Begin, d.Until); ours < theirs {
				t.Fatalf("at %s: %d units since %s, and Google has counted %d",
					now, ours, d.Begin, theirs)
			} else if d.Settled && ours != billed[day(d.Begin)] {
				t.Fatalf("at %s: %d units on %s, and %d were billed", now, ours, d.Begin,
					billed[day(d.Begin)])
			}
		}
		found, err := l.Check(t.Context(), "key1", "default", false)
		if err != nil || len(found) > 0 {
			t.Fatalf("%+v, %v", found, err)
		}
	}
	if len(billed) < 3 {
		t.Errorf("it was billed on %v", billed)
	}
}
