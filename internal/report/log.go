package report

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// Entry is one charge in the log.
type Entry struct {
	At     words.Time   `json:"at"`
	ID     string       `json:"id"`
	Bucket string       `json:"bucket"`
	Units  int64        `json:"units"`
	Total  int64        `json:"total"`
	Labels quota.Labels `json:"labels"`
	// TakenBack reports that Units, which is negative, was removed from an entry shown before.
	TakenBack bool `json:"taken_back,omitempty"`
}

// NewEntry returns an entry in JSON.
func NewEntry(e quota.Entry) Entry {
	return Entry{At: words.Time(e.At), ID: e.ID, Bucket: e.Bucket, Units: e.Units, Total: e.Total,
		Labels: e.Labels.With(nil)}
}

// Groups are charges summed by a label.
type Groups struct {
	By   string  `json:"by"`
	Rows []Group `json:"rows"`
}

// LabelOf returns the label to sum by: method, region, job, source or label:NAME.
func LabelOf(by string) (string, error) {
	if name, ok := strings.CutPrefix(by, "label:"); ok {
		if err := (quota.Labels{name: "x"}).Check(); err != nil {
			return "", fmt.Errorf("%s: not the name of a label", by)
		}
		return name, nil
	}
	if !slices.Contains([]string{quota.LabelMethod, quota.LabelRegion, quota.LabelJob,
		quota.LabelSource}, by) {
		return "", fmt.Errorf("%s: write method, region, job, source or label:NAME", by)
	}
	return by, nil
}

// Group sums the charges to one bucket with one value of a label; "" for charges without the label.
type Group struct {
	Key     string `json:"key"`
	Units   int64  `json:"units"`
	Entries int64  `json:"entries"`
	Bucket  string `json:"bucket"`

	Counts costs.Unit `json:"-"` // what Units are
}

// Grouper sums charges by the value of a label and by bucket, because units of different buckets
// cannot be added.
type Grouper map[[2]string]Group

// Add adds charges to a bucket with a value of the label.
func (g Grouper) Add(key, bucket string, unit costs.Unit, units, entries int64) {
	at := [2]string{key, bucket}
	sum := g[at]
	g[at] = Group{key, sum.Units + units, sum.Entries + entries, bucket, unit}
}

// Groups returns the sums bucket by bucket, the largest first.
func (g Grouper) Groups(by string) Groups {
	return Groups{by, sorted(g, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(b.Units, a.Units),
			cmp.Compare(a.Key, b.Key))
	})}
}

// Totals returns the sum of each bucket, in the order of the rows.
func (g Groups) Totals() (totals []Group) {
	for _, row := range g.Rows {
		n := len(totals)
		if n == 0 || totals[n-1].Bucket != row.Bucket {
			totals = append(totals, Group{Key: "total", Bucket: row.Bucket, Counts: row.Counts})
			n++
		}
		totals[n-1].Units += row.Units
		totals[n-1].Entries += row.Entries
	}
	return totals
}

// LogBuckets returns the buckets of a credential that may have a log: those with a limit, then the
// others of the price list.
func LogBuckets(cfg *config.Config, cred config.Credential, limited []string) []string {
	for _, b := range cfg.Table(cred).Buckets() {
		if !slices.Contains(limited, b.Name) {
			limited = append(slices.Clip(limited), b.Name)
		}
	}
	return limited
}

// SumsParts reports whether a bucket's spending is the sum of its parts', because a limit applies
// across them.
func SumsParts(c config.Credential, bucket string) bool {
	return slices.ContainsFunc(c.Limits, func(l quota.Limit) bool {
		return l.Across && l.Bucket == bucket
	})
}

// Span is the time after Since and up to Until. A zero bound leaves that end open.
type Span struct{ Since, Until time.Time }

// Spent sums by a label the units that were spent from the buckets in a span of time. Of
// several buckets, one that sums its parts has only the units that are in no part.
func (s Source) Spent(ctx context.Context, credential string, buckets []string, in Span,
	label string) (Grouper, error) {
	sums := make(Grouper)
	cred, err := s.Config.Credential(credential)
	if err != nil {
		return nil, err
	}
	table := s.Config.Table(cred)
	for _, b := range buckets {
		if len(buckets) > 1 && quota.IsLabelBucket(b) {
			continue
		}
		spent, err := quota.SumsBetween(ctx, s.Ledger,
			quota.SumQuery{Credential: credential, Bucket: b, Since: in.Since}, in.Until)
		if err != nil {
			return nil, err
		}
		for _, sum := range spent {
			sums.Add(sum.Labels[label], b, UnitOf(table, b), sum.Units, sum.Charges)
		}
	}
	if len(buckets) > 1 {
		sums.withoutParts(cred)
	}
	return sums, nil
}

// withoutParts subtracts the charges of parts from the buckets that sum them.
func (g Grouper) withoutParts(c config.Credential) {
	for at, part := range g {
		whole := [2]string{at[0], quota.WholeOf(part.Bucket)}
		if sum, ok := g[whole]; ok && whole != at && SumsParts(c, sum.Bucket) {
			sum.Units, sum.Entries = sum.Units-part.Units, max(1, sum.Entries-part.Entries)
			g[whole] = sum
		}
	}
	maps.DeleteFunc(g, func(_ [2]string, sum Group) bool {
		return sum.Units <= 0 && SumsParts(c, sum.Bucket)
	})
}

// Newest returns the newest entries of the buckets, the newest first.
func (s Source) Newest(ctx context.Context, credential string, buckets []string, since time.Time,
	limit int) (all []quota.Entry, err error) {
	for _, b := range buckets {
		some, err := s.Ledger.Entries(ctx, quota.Query{Credential: credential, Bucket: b,
			Since: since, Limit: limit})
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b quota.Entry) int { return b.At.Compare(a.At) })
	return all[:min(len(all), limit)], nil
}

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
