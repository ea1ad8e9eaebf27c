package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

// groups sums units by the value of a label. It reads entries if the ledger has no sums: by run or
// trace, and for the newest N entries.
func (g *gate) groups(ctx context.Context, q question) (report.Groups, error) {
	if q.limit > 0 || !quota.IsSummed(q.label) {
		sums := make(report.Grouper)
		entries, err := g.entries(ctx, q)
		for _, e := range entries {
			if q.bucket != "" || !report.SumsParts(g.cred, e.Bucket) {
				sums.Add(e.Labels[q.label], e.Bucket, report.UnitOf(g.prices(), e.Bucket), e.Units, 1)
			}
		}
		return sums.Groups(q.by), err
	}
	buckets, in, err := g.span(ctx, q)
	if err != nil {
		return report.Groups{}, err
	}
	sums, err := report.Source{Config: g.cfg, Ledger: g.Ledger}.Spent(ctx, g.Credential, buckets,
		in, q.label)
	return sums.Groups(q.by), err
}

// missing returns an error if there are entries and none has the label, because its name is
// probably mistyped.
func missing(q question, list report.Groups) error {
	has := func(row report.Group) bool { return row.Key != "" }
	if !q.bare || len(list.Rows) == 0 || slices.ContainsFunc(list.Rows, has) {
		return nil
	}
	labels := []string{quota.LabelMethod, quota.LabelRegion, quota.LabelJob, quota.LabelSource}
	return cli.Hint(cli.Usagef("--by %s: no entry has such a label%s", q.by,
		words.DidYouMean(q.by, labels)),
		"write method, region, job, source, or label:%s to have it all the same", q.by)
}

// printGroups prints a block for each bucket, with its total.
func (a *app) printGroups(ctx context.Context, g *gate, q question) error {
	list, err := g.groups(ctx, q)
	if err = cmp.Or(err, missing(q, list)); err != nil {
		return err
	}
	if a.InLines() {
		out := a.Lines("key", "units", "entries", "bucket")
		for _, row := range list.Rows {
			err = cmp.Or(err, out.Add(row, row.Key, strconv.FormatInt(row.Units, 10),
				strconv.FormatInt(row.Entries, 10), row.Bucket))
		}
		return cmp.Or(err, out.Flush())
	}
	return a.Print(list, func(s cli.Screen) {
		t := s.Table(list.By, "bucket", ">units", ">entries")
		totals := list.Totals()
		rows := list.Rows
		for _, total := range totals {
			for ; len(rows) > 0 && rows[0].Bucket == total.Bucket; rows = rows[1:] {
				t.Row(groupCells(s, rows[0])...)
			}
			t.Row(groupCells(s, total)...)
		}
		if len(totals) == 0 {
			t.Row("total", "", 0, 0)
		}
		s.Draw(t, cli.Cut(list.By, 12), cli.Cut("bucket", 12))
	})
}

func groupCells(s cli.Screen, row report.Group) []any {
	return []any{cmp.Or(row.Key, "(none)"), row.Bucket, s.Amount(row.Counts, row.Units), row.Entries}
}

// printDenials prints the counts of denied charges.
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
	return a.Print(list, func(s cli.Screen) {
		if len(list.Rows) == 0 {
			s.Say("nothing was denied\n")
			return
		}
		t := s.Table(q.by, "bucket", ">denials", ">units", "limit", "last")
		for _, row := range list.Rows {
			key := cli.Cell{Text: cmp.Or(row.Key, "(none)")}
			if at, err := time.Parse(time.RFC3339, row.Key); err == nil && q.label == report.ByHour {
				key = s.On(at)
			}
			t.Row(key, row.Bucket, row.Denials,
				s.Amount(report.UnitOf(g.prices(), row.Bucket), row.Units), row.Limit,
				s.On(time.Time(row.LastAt).Truncate(time.Second)))
		}
		s.Draw(t, cli.Shorten("last"), cli.Drop("bucket"), cli.Cut("limit", 14),
			cli.Cut(q.by, 12))
	})
}
