package main

import (
	"cmp"
	"context"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// groups adds up by the value of a label, the largest sum first. The ledger's sums do not have the
// run, and there are none of the newest N entries: for these, the entries are read.
func (g *gate) groups(ctx context.Context, q question, label string) (report.Groups, error) {
	if q.limit > 0 || label == quota.LabelRun {
		sums := make(report.Grouper)
		err := g.eachEntry(ctx, q, func(e quota.Entry) error {
			sums.Add(e.Labels[label], e.Units, 1)
			return nil
		})
		return sums.Groups(q.by), err
	}
	buckets, since, err := g.span(ctx, q)
	if err != nil {
		return report.Groups{}, err
	}
	sums, err := report.Source{Config: g.cfg, Ledger: g.Ledger}.Spent(ctx, g.Credential, buckets,
		since, label)
	return sums.Groups(q.by), err
}

func (a *app) printGroups(list report.Groups) error {
	return a.Print(list, func() error {
		s := a.Screen()
		t := s.Table(list.By, ">units", ">entries")
		var units, entries int64
		for _, row := range list.Rows {
			key := cmp.Or(row.Key, "(none)")
			t.AppendRow([]any{key, row.Units, row.Entries})
			units, entries = units+row.Units, entries+row.Entries
		}
		t.AppendRow([]any{"total", units, entries})
		return s.Draw(t, cli.Cut(list.By, 12))
	})
}
