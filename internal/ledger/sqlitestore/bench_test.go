package sqlitestore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// wide never denies within a benchmark.
var wide = []quota.Limit{
	{Bucket: "default", Units: quota.MaxUnits, Headroom: 500, Window: day(1)[0].Window},
	{Bucket: "default", Units: quota.MaxUnits,
		Window: quota.Window{Calendar: "day", Zone: time.UTC}},
}

// BenchmarkCharge compares, in one run and on files with the same settings, what SQLite does with
// one row a transaction, what one caller gets, and what many callers of one process get together.
//
//	go test -run '^$' -bench Charge ./internal/ledger/sqlitestore
func BenchmarkCharge(b *testing.B) {
	var raw float64
	b.Run("raw", func(b *testing.B) { raw = rawTransactions(b) })
	for _, callers := range []int{1, 20, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			rate := charges(b, callers)
			b.ReportMetric(rate/raw, "x-raw")
		})
	}
}

func rawTransactions(b *testing.B) float64 {
	db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "raw.db"), sqlite.Schema{
		Name: "row file", ApplicationID: 1, Migrations: rawSchema,
	})
	must(b, err)
	defer db.Close()
	b.ResetTimer()
	for i := range b.N {
		err := db.Update(b.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT INTO t VALUES (?, ?)", i, "06fmjq2kx4a9bc")
			return err
		})
		must(b, err)
	}
	return perSecond(b)
}

func charges(b *testing.B, callers int) float64 {
	l := openEnv(b, file(b))
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				d, err := l.Charge(context.Background(), aCharge(1, wide))
				if err != nil || !d.Allowed {
					b.Errorf("charge: %+v, %v", d, err)
					return
				}
			}
		})
	}
	wg.Wait()
	return perSecond(b)
}

func perSecond(b *testing.B) float64 {
	rate := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "charges/s")
	return rate
}

// BenchmarkDecide measures a denial, which waits for no disk, by the number of logged entries and
// of open reservations.
func BenchmarkDecide(b *testing.B) {
	var base float64 // seconds per decision of the first case
	for i, c := range []struct {
		logged, open int
		lapse        quota.Lapse
	}{
		{1000, 0, ""}, {100, 0, ""}, {10_000, 0, ""}, {100_000, 0, ""},
		{1000, 100, quota.LapseRelease}, {1000, 5000, quota.LapseRelease},
		{1000, 100, quota.LapseCharge}, {1000, 5000, quota.LapseCharge},
	} {
		b.Run(fmt.Sprintf("logged=%d/open=%d%s", c.logged, c.open, c.lapse), func(b *testing.B) {
			l := openEnv(b, file(b))
			fill(b, l, c.logged)
			reserve(b, l, c.open, c.lapse)
			u, err := l.Usage(b.Context(), "key1", wide[:1])
			must(b, err)
			full := day(u.Buckets[0].Held + u.Buckets[0].Limits[0].Used)
			b.ResetTimer()
			for range b.N {
				d, err := l.Charge(b.Context(), aCharge(1, full))
				if err != nil || d.Allowed {
					b.Fatalf("charge: %+v, %v", d, err)
				}
			}
			each := b.Elapsed().Seconds() / float64(b.N)
			if i == 0 {
				base = each
			}
			b.ReportMetric(each/base, "x-first")
		})
	}
}

// reserve makes reservations of 1 to 10 units.
func reserve(b *testing.B, l *env, reservations int, lapse quota.Lapse) {
	var wg sync.WaitGroup
	for caller := range 100 {
		wg.Go(func() {
			for i := caller; i < reservations; i += 100 {
				_, err := l.Reserve(context.Background(), quota.Reserve{
					Credential: "key1", ID: fmt.Sprintf("default.r%d", i), Lapse: lapse,
					Costs: []quota.Cost{{Bucket: "default", Units: int64(1 + i%10)}},
					TTL:   time.Hour + time.Duration(i)*time.Second, Limits: wide,
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func fill(b *testing.B, l *env, entries int) {
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for range entries / 100 {
				if _, err := l.Charge(context.Background(), aCharge(1, wide)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
