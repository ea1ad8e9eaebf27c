package main

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

type question struct {
	since, bucket, by string
	limit             int
}

func (a *app) log() *cobra.Command {
	var q question
	c := &cobra.Command{
		Use:   "log",
		Short: "Show who spent units: the entries, oldest first, or their sums",
		Long: `log lists the charges in the ledger (at least those of the last 72 hours), oldest
first, of every bucket of the credential, or adds them up by a label.`,
		Example: `  quotactl log --since 1h
  quotactl log --since 48h --by method
  quotactl log --by label:team --bucket default
  quotactl log --since 2026-11-21T08:00:00Z -o json | jq '.entries[].units'`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			label := ""
			if c.Flags().Changed("by") {
				var err error
				if label, err = report.LabelOf(q.by); err != nil {
					return cli.Usagef("--by %w", err)
				}
			}
			if q.limit < 0 {
				return cli.Usagef("--limit %d: must be 1 or more, or 0 for all", q.limit)
			}
			return a.with(c.Context(), func(g *gate) error {
				if label == "" {
					return a.printEntries(g.prices(), func(do func(quota.Entry) error) error {
						return g.eachEntry(c.Context(), q, do)
					})
				}
				groups, err := g.groups(c.Context(), q, label)
				if err != nil {
					return err
				}
				return a.printGroups(groups)
			})
		},
	}
	c.Flags().StringVar(&q.since, "since", "",
		"only entries after this `TIME`: a duration before now (1h, 7d), or RFC 3339 (default all)")
	c.Flags().StringVar(&q.bucket, "bucket", "", "only of this `BUCKET`")
	c.Flags().StringVar(&q.by, "by", "", "add up by method, region, job, source or label:`NAME`")
	c.Flags().IntVar(&q.limit, "limit", 0, "only the newest `N` entries; 0 for all")
	return c
}

// chosen is the bucket asked for, or all buckets: those with a limit, then those that once may have
// had one, and what else the ledger has.
func (g *gate) chosen(ctx context.Context, bucket string) ([]string, error) {
	all := report.LogBuckets(g.cfg, g.cred, g.Buckets())
	known, err := g.Ledger.BucketsOf(ctx, g.Credential)
	if err != nil {
		return nil, err
	}
	for _, b := range known {
		if !slices.Contains(all, b) {
			all = append(slices.Clip(all), b)
		}
	}
	switch {
	case bucket == "":
		return all, nil
	case slices.Contains(all, bucket):
		return []string{bucket}, nil
	}
	return nil, g.bucket(bucket)
}

// span is the buckets asked for, and the time after which entries are.
func (g *gate) span(ctx context.Context, q question) (buckets []string, since time.Time,
	err error) {
	if buckets, err = g.chosen(ctx, q.bucket); err != nil || q.since == "" {
		return buckets, since, err
	}
	now, err := g.Ledger.Time(ctx)
	if err != nil {
		return buckets, since, err
	}
	if since, err = parseTime(q.since, now, -1); err != nil {
		err = cli.Usagef("--since %s: write a duration such as 1h or 7d, or RFC 3339, "+
			"such as 2026-11-21T08:00:00Z", q.since)
	}
	return buckets, since, err
}

// eachEntry merges the logs of the buckets by time.
func (g *gate) eachEntry(ctx context.Context, q question, do func(quota.Entry) error) error {
	buckets, since, err := g.span(ctx, q)
	if err != nil {
		return err
	}
	queries := make([]quota.Query, len(buckets))
	for i, b := range buckets {
		queries[i] = quota.Query{Credential: g.Credential, Bucket: b, Since: since, Limit: q.limit}
	}
	if q.limit == 0 {
		return g.merge(ctx, queries, do)
	}
	var all []quota.Entry
	for _, query := range queries {
		some, err := g.Ledger.Entries(ctx, query)
		if err != nil {
			return err
		}
		all = append(all, some...)
		if some, err = g.takings(ctx, query); err != nil {
			return err
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, byTime)
	for _, e := range all[max(0, len(all)-q.limit):] {
		if err := do(e); err != nil {
			return err
		}
	}
	return nil
}

func byTime(a, b quota.Entry) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
}

// merge takes the oldest entry of several logs until there is none, a page of each in memory.
func (g *gate) merge(ctx context.Context, queries []quota.Query, do func(quota.Entry) error) error {
	type log struct {
		first quota.Entry
		next  func() (quota.Entry, error, bool)
	}
	var logs []*log
	add := func(entries iter.Seq2[quota.Entry, error]) (stop func(), err error) {
		next, stop := iter.Pull2(entries)
		first, err, ok := next()
		if ok && err == nil {
			logs = append(logs, &log{first, next})
		}
		return stop, err
	}
	for _, q := range queries {
		taken, err := g.takings(ctx, q)
		if err != nil {
			return err
		}
		for _, entries := range []iter.Seq2[quota.Entry, error]{
			quota.All(ctx, g.Ledger, q), each(taken)} {
			stop, err := add(entries)
			defer stop()
			if err != nil {
				return err
			}
		}
	}
	for len(logs) > 0 {
		oldest := slices.MinFunc(logs, func(a, b *log) int { return byTime(a.first, b.first) })
		if err := do(oldest.first); err != nil {
			return err
		}
		first, err, ok := oldest.next()
		if err != nil {
			return err
		}
		if oldest.first = first; !ok {
			logs = slices.DeleteFunc(logs, func(l *log) bool { return l == oldest })
		}
	}
	return nil
}

// printEntries writes entries as they come. each is called twice for a table: at first for the
// widths of its columns.
func (a *app) printEntries(table *costs.Table, each func(do func(quota.Entry) error) error) error {
	items := func(do func(any) error) error {
		return each(func(e quota.Entry) error {
			return do(report.NewEntry(e))
		})
	}
	return a.PrintEach("entries", items, func() error {
		s := a.Screen()
		t := s.Table("at", "bucket", ">units", "method", "region", "labels", "id")
		t.Rows = func(row func(cells []any) error) error {
			return each(func(e quota.Entry) error {
				method, region := e.Labels[quota.LabelMethod], e.Labels[quota.LabelRegion]
				return row([]any{s.At(cli.Time(e.At)), e.Bucket,
					s.Amount(report.UnitOf(table, e.Bucket), e.Units), method, region,
					otherLabels(e.Labels), e.ID})
			})
		}
		return s.Draw(t, cli.Shorten("at"), cli.Cut("labels", 24), cli.Drop("id"), cli.Cut("labels",
			10), cli.Cut("method", 12), cli.Cut("region", 6), cli.Cut("bucket", 8))
	})
}

func otherLabels(labels quota.Labels) string {
	others := labels.With(nil)
	delete(others, quota.LabelMethod)
	delete(others, quota.LabelRegion)
	return labelText(others)
}
