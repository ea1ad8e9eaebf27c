package report

import (
	"cmp"
	"context"
	"slices"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// Chargeback holds the units that each value of a label has spent in a month.
type Chargeback struct {
	Month string          `json:"month"`
	By    string          `json:"by"`
	From  words.Time      `json:"from"`
	Until words.Time      `json:"until"`
	Rows  []ChargebackRow `json:"rows"`
}

// ChargebackRow holds the units that one value of the label has spent from a bucket; "" for entries
// without the label.
type ChargebackRow struct {
	Credential string   `json:"credential"`
	Bucket     string   `json:"bucket"`
	Key        string   `json:"key"`
	Units      int64    `json:"units"`
	Entries    int64    `json:"entries"`
	Share      float64  `json:"share"` // of the credential's bucket
	USD        *float64 `json:"usd"`   // nil if the bucket does not count money
	// Complete is false if the ledger may have dropped entries of the month.
	Complete bool `json:"complete"`

	Counts costs.Unit `json:"-"` // the unit of Units
}

// Chargeback sums the spending of a UTC month by a label, up to now at most.
func (s Source) Chargeback(ctx context.Context, month time.Time, by, label string) (Chargeback,
	error) {
	now, err := s.Ledger.Time(ctx)
	if err != nil {
		return Chargeback{}, err
	}
	until := month.AddDate(0, 1, 0)
	if until.After(now) {
		until = now
	}
	out := Chargeback{month.Format("2006-01"), by, words.Time(month), words.Time(until),
		[]ChargebackRow{}}
	in := Span{month.Add(-time.Microsecond), until.Add(-time.Microsecond)}
	for _, c := range s.Config.Credentials {
		logged, err := s.Ledger.BucketsOf(ctx, c.Name)
		if err != nil {
			return out, err
		}
		spent, err := s.Spent(ctx, c.Name, quota.BucketNames(logged), in, label)
		if err != nil {
			return out, err
		}
		wholes := make(Grouper) // sums the parts of a bucket
		for _, g := range spent {
			wholes.Add(g.Key, quota.WholeOf(g.Bucket), g.Counts, g.Units, g.Entries)
		}
		groups := wholes.Groups(by)
		totals := map[string]int64{}
		for _, total := range groups.Totals() {
			totals[total.Bucket] = total.Units
		}
		for _, g := range groups.Rows {
			row := ChargebackRow{Credential: c.Name, Bucket: g.Bucket, Key: g.Key, Units: g.Units,
				Entries: g.Entries, Counts: g.Counts,
				Share: float64(g.Units) / float64(max(1, totals[g.Bucket]))}
			retention := quota.RetentionFor(slices.DeleteFunc(slices.Clone(c.Limits),
				func(l quota.Limit) bool { return quota.WholeOf(l.Bucket) != g.Bucket }))
			row.Complete = !month.Before(now.Add(-retention))
			if g.Counts.IsMoney() {
				usd := float64(g.Units) / float64(cmp.Or(g.Counts.Scale, 1))
				row.USD = &usd
			}
			out.Rows = append(out.Rows, row)
		}
	}
	return out, nil
}
