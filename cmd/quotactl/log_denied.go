package main

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/report"
)

// printDenials prints the charges that were denied, added up.
func (a *app) printDenials(ctx context.Context, g *gate, q question) error {
	_, in, err := g.span(ctx, q)
	if err != nil {
		return err
	}
	src := report.Source{Config: g.cfg, Ledger: g.Ledger}
	list, err := src.Denied(ctx, g.Credential, q.bucket, q.label, in)
	if err != nil {
		return err
	}
	list.By = q.by
	if a.InLines() {
		out := a.Lines("key", "bucket", "denials", "units", "limit", "last_at")
		for _, row := range list.Rows {
			err = cmp.Or(err, out.Add(row, row.Key, row.Bucket,
				strconv.FormatInt(row.Denials, 10), strconv.FormatInt(row.Units, 10), row.Limit,
				time.Time(row.LastAt).Format(time.RFC3339)))
		}
		return cmp.Or(err, out.Flush())
	}
	return a.Print(list, func() error {
		s := a.Screen()
		if len(list.Rows) == 0 {
			return s.Say("nothing was denied\n")
		}
		t := s.Table(q.by, "bucket", ">denials", ">units", "limit", "last")
		for _, row := range list.Rows {
			key := cli.Cell{Text: cmp.Or(row.Key, "(none)")}
			if at, err := time.Parse(time.RFC3339, row.Key); err == nil && q.label == report.ByHour {
				key = s.On(at)
			}
			t.AppendRow([]any{key, row.Bucket, row.Denials,
				s.Amount(report.UnitOf(g.prices(), row.Bucket), row.Units), row.Limit,
				s.On(time.Time(row.LastAt).Truncate(time.Second))})
		}
		return s.Draw(t, cli.Shorten("last"), cli.Drop("bucket"), cli.Cut("limit", 14),
			cli.Cut(q.by, 12))
	})
}
