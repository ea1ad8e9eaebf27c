package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/bill"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// compare fills in the rows.
func (r *reconciling) compare(ctx context.Context, now time.Time) error {
	for _, m := range r.prices().Meters() {
		if r.flags.lag >= 0 {
			m.Lag = r.flags.lag
		}
		for _, f := range m.Usage {
			b, drawn := r.prices().Bucket(f.Bucket)
			if !drawn {
				continue
			}
			days, err := r.client.Days(ctx, m, f, now, r.flags.days, r.kept)
			if err != nil {
				return err
			}
			for _, day := range days {
				count, err := r.client.Count(ctx, m, f, day)
				if err != nil {
					return err
				}
				if err := r.compareDay(ctx, b, f, day, count); err != nil {
					return err
				}
			}
		}
	}
	slices.SortStableFunc(r.out.Rows, func(a, b reconciledRow) int {
		return a.day.Begin.Compare(b.day.Begin)
	})
	return nil
}

// compareDay adds the row of a bucket and a day, or the rows of the bucket's parts.
func (r *reconciling) compareDay(ctx context.Context, b costs.Bucket, f costs.Figure, day bill.Day,
	count bill.Count) error {
	counts := map[string]bill.Count{b.Name: count}
	if len(b.Split) > 0 {
		delete(counts, b.Name)
		for _, credential := range r.shares {
			known, err := r.Ledger.BucketsOf(ctx, credential)
			if err != nil {
				return err
			}
			for _, part := range quota.BucketNames(known) {
				if quota.WholeOf(part) == b.Name && part != b.Name {
					counts[part] = bill.Count{Known: count.Known, Models: map[string]int64{}}
				}
			}
		}
		for model, units := range count.Models {
			part := r.prices().PartOf(b.Name, model)
			c := counts[part]
			if c.Models == nil {
				c = bill.Count{Known: count.Known, Models: map[string]int64{}}
			}
			c.Units += units
			c.Models[model] = units
			counts[part] = c
		}
	}
	for _, bucket := range slices.Sorted(maps.Keys(counts)) {
		row := reconciledRow{Bucket: bucket, Metric: b.Metric, From: words.Time(day.Begin),
			To: words.Time(day.Until), Settled: day.Settled, day: day, unit: b.Unit}
		if err := r.fill(ctx, &row, f, counts[bucket]); err != nil {
			return err
		}
		r.out.Rows = append(r.out.Rows, row)
	}
	return nil
}

// fill compares the ledger's count of a row with the upstream's.
func (r *reconciling) fill(ctx context.Context, row *reconciledRow, f costs.Figure,
	count bill.Count) error {
	after, until := row.day.Span()
	own := ledgerCount{models: map[string]int64{}, unlisted: map[string]int64{}}
	for i, credential := range r.shares {
		units, err := r.Ledger.Between(ctx, credential, row.Bucket, after, until)
		if err != nil {
			return err
		}
		sums, err := quota.SumsBetween(ctx, r.Ledger, quota.SumQuery{Credential: credential,
			Bucket: row.Bucket, Since: after}, until)
		if err != nil {
			return err
		}
		for _, s := range sums {
			own.entries += s.Charges
			if priced := s.Labels[quota.LabelPriced]; priced != "" {
				model, _, _ := strings.Cut(priced, "/")
				own.models[costs.ModelName(model)] += s.Units
			}
			if name := s.Labels[quota.LabelUnlisted]; name != "" {
				own.unlisted[name] += s.Units
			}
		}
		if row.Ours += units; i == 0 {
			row.own = units
		}
	}
	others, err := r.others(ctx, row.Bucket, f.Window)
	if err != nil {
		return err
	}
	row.Ours += others
	if count.Known {
		row.Theirs = &count.Units
	}
	slack := int64(0)
	switch {
	case f.Least:
		slack = row.Ours
	case f.Scale > 1: // each entry is rounded to a unit
		slack = own.entries
	}
	row.Verdict, row.Correction = row.day.Judge(row.Ours, count.Units, count.Known, slack)
	row.Models = modelRows(own.models, count.Models)
	row.Why = own.why(*row)
	return nil
}

// others returns the units of a window in progress that other callers used, as far as the ledger
// has learned of them without an entry.
func (r *reconciling) others(ctx context.Context, bucket string, w quota.Window) (int64, error) {
	if !w.Anchored {
		return 0, nil
	}
	usage, err := r.Ledger.Usage(ctx, r.Credential,
		[]quota.Limit{{Bucket: bucket, Units: 1, Window: w}})
	if err != nil {
		return 0, err
	}
	return usage.Buckets[0].Limits[0].Others, nil
}

// ledgerCount is the ledger's count for a row.
type ledgerCount struct {
	entries  int64
	models   map[string]int64 // by the names in the label priced, without dates
	unlisted map[string]int64 // units of models without a price of their own
}

// modelRow is both counts of a model.
type modelRow struct {
	Model  string `json:"model"`
	Ours   int64  `json:"ours"`
	Theirs int64  `json:"theirs"`
}

// modelRows returns the models, the largest difference first; none if the upstream reports no
// models.
func modelRows(ours, theirs map[string]int64) []modelRow {
	rows := []modelRow{}
	if _, unnamed := theirs[""]; len(theirs) == 0 || unnamed && len(theirs) == 1 {
		return rows
	}
	sums := map[string]int64{}
	for model, units := range theirs {
		sums[costs.ModelName(model)] += units
	}
	names := maps.Clone(sums)
	maps.Copy(names, ours)
	for model := range names {
		rows = append(rows, modelRow{model, ours[model], sums[model]})
	}
	apart := func(m modelRow) int64 { return max(m.Ours-m.Theirs, m.Theirs-m.Ours) }
	slices.SortFunc(rows, func(a, b modelRow) int {
		return cmp.Or(cmp.Compare(apart(b), apart(a)), cmp.Compare(a.Model, b.Model))
	})
	return rows
}

// why returns the explanation of a row's difference, as far as the figures show it.
func (c ledgerCount) why(row reconciledRow) []string {
	lines := []string{}
	if row.Correction == 0 {
		return lines
	}
	for _, m := range row.Models {
		name := cmp.Or(m.Model, "usage without a model")
		switch apart := m.Theirs - m.Ours; {
		case m.Ours == 0 && m.Theirs > 0:
			lines = append(lines, fmt.Sprintf("%s: %s that no program has spent by the gate", name,
				row.unit.Text(m.Theirs)))
		case m.Theirs == 0 && m.Ours > 0:
			lines = append(lines, fmt.Sprintf("%s: %s that were not billed", name,
				row.unit.Text(m.Ours)))
		case m.Ours > 0 && (apart > m.Ours/100 || -apart > m.Ours/100):
			lines = append(lines, fmt.Sprintf("%s: billed at %.2f times what the ledger has; "+
				"another program spends, or its price has changed", name,
				float64(m.Theirs)/float64(m.Ours)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.unlisted)) {
		lines = append(lines, fmt.Sprintf("%s: %s booked without a price of its own", name,
			row.unit.Text(c.unlisted[name])))
	}
	return lines
}
