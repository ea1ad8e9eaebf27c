package quota_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/memstore"
	"quotabudget/internal/quota"
)

// TestSpent: the ledger's sums return everything spent, as much in each window as the ledger
// counts, in a few lines.
func TestSpent(t *testing.T) {
	var now time.Time
	ledger := ledger.New(&memstore.Store{Now: func() time.Time { return now }})
	los, err := time.LoadLocation("America/Los_Angeles")
	must(t, err)
	limit := func(w quota.Window) quota.Limit {
		return quota.Limit{Bucket: quota.DefaultBucket, Units: quota.MaxUnits, Window: w}
	}
	limits := []quota.Limit{
		limit(quota.Sliding(24 * time.Hour)), limit(quota.Sliding(7 * time.Hour)),
		limit(quota.Window{Calendar: "day", Zone: los}),
	}
	plays := 0
	rapid.Check(t, func(r *rapid.T) {
		plays++
		b := quota.Budget{Ledger: ledger, Credential: fmt.Sprint("key", plays), Limits: limits}
		end := time.Date(2026, 11, 1, rapid.IntRange(0, 23).Draw(r, "hour"), 0, 0, 0, time.UTC).
			Add(some(r, "into", "0", "4m", "10m", "9m59.999999s", "37m5s"))
		now = end.Add(-30 * time.Hour)
		all := make(map[string]int64)
		for range rapid.IntRange(0, 60).Draw(r, "charges") {
			now = now.Add(some(r, "later", "1us", "7s", "3m", "11m", "47m", "5h"))
			if now.After(end) {
				break
			}
			region := rapid.SampledFrom([]string{"US", "GB"}).Draw(r, "region")
			units := rapid.Int64Range(1, 9).Draw(r, "units")
			labels := quota.Labels{quota.LabelRegion: region}
			call := quota.Call{Bucket: quota.DefaultBucket, Units: units, Labels: labels}
			if _, err := b.Charge(t.Context(), call); err != nil {
				r.Fatal(err)
			}
			all[region] += units
		}
		now = end
		usage, err := ledger.Usage(t.Context(), b.Credential, limits)
		must(r, err)
		q := quota.SpentQuery{
			Credential: b.Credential, Bucket: quota.DefaultBucket, Limits: limits,
			Now: end, Since: end.Add(-48 * time.Hour),
		}
		spent, err := q.Read(t.Context(), ledger)
		must(r, err)
		read := make(map[string]int64)
		for i, s := range spent {
			read[s.Labels[quota.LabelRegion]] += s.Units
			if s.Charges < 1 || i > 0 && s.At.Before(spent[i-1].At) || s.At.After(end) {
				r.Fatalf("%d: %+v", i, s)
			}
		}
		if read["US"] != all["US"] || read["GB"] != all["GB"] {
			r.Fatalf("%v were spent, %v read", all, read)
		}
		for _, l := range usage.Buckets[0].Limits {
			after := end.Add(-l.Limit.Window.Length)
			if l.Limit.Window.IsCalendar() {
				start, _ := l.Limit.Window.Bounds(end)
				after = start.Add(-1)
			}
			var inside int64
			for _, s := range spent {
				if s.At.After(after) {
					inside += s.Units
				}
			}
			if inside != l.Used {
				r.Fatalf("%s: %d are used, %d read", l.Limit.Name(), l.Used, inside)
			}
		}
	})
}

// some draws one of the durations.
func some(r *rapid.T, label string, durations ...string) time.Duration {
	d, err := time.ParseDuration(rapid.SampledFrom(durations).Draw(r, label))
	must(r, err)
	return d
}
