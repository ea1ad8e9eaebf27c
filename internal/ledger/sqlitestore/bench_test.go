package sqlitestore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
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

// BenchmarkDecide is a denial, which waits for no disk: what deciding itself costs, by how much is
// logged.
func BenchmarkDecide(b *testing.B) {
	for _, logged := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("logged=%d", logged), func(b *testing.B) {
			l := openEnv(b, file(b))
			fill(b, l, logged)
			denials(b, l, int64(logged))
		})
	}
}

// denials charges where so many units are the limit, and used up.
func denials(b *testing.B, l *env, units int64) {
	b.ResetTimer()
	for range b.N {
		if d, err := l.Charge(b.Context(), aCharge(1, day(units))); err != nil || d.Allowed {
			b.Fatalf("charge: %+v, %v", d, err)
		}
	}
}

// BenchmarkReservations is BenchmarkDecide by how many reservations are open.
func BenchmarkReservations(b *testing.B) {
	var none float64
	for _, lapse := range []quota.Lapse{quota.LapseRelease, quota.LapseCharge} {
		for _, held := range []int{0, 100, 5000} {
			b.Run(fmt.Sprintf("lapse=%s/open=%d", lapse, held), func(b *testing.B) {
				l := openEnv(b, file(b))
				fill(b, l, 1000)
				reserve(b, l, held, lapse)
				u, err := l.Usage(b.Context(), "key1", wide[:1])
				must(b, err)
				full := u.Buckets[0].Held + u.Buckets[0].Limits[0].Used
				denials(b, l, full)
				each := b.Elapsed().Seconds() / float64(b.N)
				if held == 0 {
					none = each
				}
				b.ReportMetric(each/none, "x-none")
			})
		}
	}
}

// BenchmarkSettle compares, in one run, a charge of a price that is known beforehand, and one that
// is set aside and settled; of several buckets, too, and under a limit that is restored.
func BenchmarkSettle(b *testing.B) {
	restored := append(restoring(b, 1_000_000, "restoring 1000000/1s"), wide...)
	two := append([]quota.Limit{{Bucket: "other", Units: quota.MaxUnits, Window: wide[0].Window}},
		wide...)
	for _, c := range []struct {
		name   string
		limits []quota.Limit
		costs  []quota.Cost
	}{
		{"buckets=1", wide, []quota.Cost{{Bucket: "default", Units: 2}}},
		{"buckets=2", two, []quota.Cost{{Bucket: "default", Units: 2}, {Bucket: "other", Units: 2}}},
		{"restoring", restored, []quota.Cost{{Bucket: "default", Units: 2}}},
	} {
		var charge float64
		b.Run(c.name+"/charge", func(b *testing.B) {
			l := openEnv(b, file(b))
			for b.Loop() {
				asked := aCharge(2, c.limits)
				asked.Costs = c.costs
				if d, err := l.Charge(b.Context(), asked); err != nil || !d.Allowed {
					b.Fatal(d, err)
				}
			}
			charge = perSecond(b)
		})
		b.Run(c.name+"/settle", func(b *testing.B) {
			l := openEnv(b, file(b))
			for b.Loop() {
				holdAndSettle(b, l, c.costs, c.limits)
			}
			b.ReportMetric(charge/perSecond(b), "x-charge")
		})
	}
}

func holdAndSettle(b *testing.B, l *env, costs []quota.Cost, limits []quota.Limit) {
	b.Helper()
	asked := aCharge(2, limits)
	names := make([]string, len(costs))
	for i, c := range costs {
		names[i] = c.Bucket
	}
	id := quota.ReservationID(asked.ID, names...)
	d, err := l.Reserve(b.Context(), quota.Reserve{
		Credential: "key1", ID: id, Costs: costs, Limits: limits, TTL: time.Minute,
		Lapse: quota.LapseCharge, Labels: asked.Labels,
	})
	if err != nil || !d.Allowed {
		b.Fatal(d, err)
	}
	truth := slices.Clone(costs)
	truth[0].Units = 1
	if d, err = l.Settle(b.Context(), quota.Settle{
		Credential: "key1", Reservation: id, ID: asked.ID, Costs: truth, Limits: limits,
		Labels: asked.Labels,
	}); err != nil {
		b.Fatal(d, err)
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

// BenchmarkSums reads who spent what, and how much between two moments, by how much is logged.
func BenchmarkSums(b *testing.B) {
	for _, logged := range []int{1000, 100_000} {
		l := openEnv(b, file(b))
		fill(b, l, logged)
		to := time.Now()
		for name, read := range map[string]func() error{
			"sums": func() error {
				q := quota.SumQuery{Credential: "key1", Bucket: "default"}
				_, err := l.Sums(b.Context(), q)
				return err
			},
			"between": func() error {
				_, err := l.Between(b.Context(), "key1", "default", to.Add(-time.Hour), to)
				return err
			},
		} {
			b.Run(fmt.Sprintf("%s/logged=%d", name, logged), func(b *testing.B) {
				for range b.N {
					must(b, read())
				}
			})
		}
	}
}

func restoring(t testing.TB, units int64, windows ...string) (limits []quota.Limit) {
	t.Helper()
	for _, text := range windows {
		w, err := quota.ParseWindow(text, "")
		must(t, err)
		limits = append(limits, quota.Limit{Bucket: "default", Units: units, Window: w})
	}
	return limits
}
