package daemon_test

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"quotabudget/internal/catalog"
	"quotabudget/internal/daemon"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// BenchmarkDecision measures a decision while units are short, with a day's 197,000 charges in a
// ledger on Redis, a fiftieth of them made by the lanes.
func BenchmarkDecision(b *testing.B) {
	server := redistest.Start(b, redistest.Options{Clock: true})
	now := time.Date(2026, time.June, 2, 20, 0, 0, 0, time.UTC)
	server.SetNow(b, now.Add(-24*time.Hour))
	window, err := quota.ParseWindow("day", "America/Los_Angeles")
	must(b, err)
	limits := []quota.Limit{
		{Bucket: quota.DefaultBucket, Units: 201_000, Window: window},
		{Bucket: quota.DefaultBucket, Units: 197_000, Window: quota.Sliding(24 * time.Hour)},
	}
	l, w := onRedis(b, server, limits...)
	all := lanes(b, "*/10 * * * *", "UTC", eight, time.Minute)
	for i := range all {
		all[i].Pages = 8
	}
	const steps, each = 1000, 200
	for step := range steps {
		server.SetNow(b, now.Add(time.Duration(step-steps)*24*time.Hour/steps))
		var charges errgroup.Group
		charges.SetLimit(16)
		for i := range each {
			labels := quota.Labels{quota.LabelJob: "elsewhere",
				quota.LabelMethod: "youtube.search.list"}
			if i%50 == 0 {
				l := all[(step+i)%len(all)]
				labels = quota.Labels{quota.LabelJob: l.Job, quota.LabelRegion: l.Region}
			}
			charges.Go(func() error {
				_, err := l.Charge(context.Background(), quota.Charge{Credential: "key1",
					ID: quota.NewID(time.Now()), Limits: limits, Labels: labels,
					Costs: []quota.Cost{{Bucket: quota.DefaultBucket, Units: 1}}})
				return err
			})
		}
		must(b, charges.Wait())
	}
	server.SetNow(b, now)
	config := daemon.Config{Lanes: w.Lanes(all), Spending: l}
	for b.Loop() {
		if shares, err := config.Shares(b.Context(), "key1"); err != nil || len(shares) == 0 {
			b.Fatal(shares, err)
		}
	}
}

// onRedis returns a ledger on a Redis server, and a daemon's work on it.
func onRedis(t testing.TB, server *redistest.Server,
	limits ...quota.Limit) (*ledger.Ledger, *daemon.Sweep) {
	t.Helper()
	l, err := ledger.Open(t.Context(), server.URL())
	must(t, err)
	t.Cleanup(func() { l.Close() })
	cat, err := catalog.Open(t.Context(), "sqlite://"+t.TempDir()+"/catalog.db")
	must(t, err)
	t.Cleanup(func() { cat.Close() })
	w := new(daemon.Sweep)
	w.Catalog, w.Day = cat, limits[0].Window
	price := []quota.Cost{{Bucket: quota.DefaultBucket, Units: 1}}
	w.Budget = &quota.Budget{Ledger: l, Credential: "key1", Limits: limits,
		Prices: map[string][]quota.Cost{"youtube.videos.list": price}}
	return l, w
}
