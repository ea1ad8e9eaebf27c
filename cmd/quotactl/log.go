package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
)

type entryList struct {
	Entries []entry `json:"entries"`
}

type entry struct {
	At     cli.Time     `json:"at"`
	ID     string       `json:"id"`
	Bucket string       `json:"bucket"`
	Units  int64        `json:"units"`
	Total  int64        `json:"total"`
	Labels quota.Labels `json:"labels"`
}

// question is what log is asked for.
type question struct {
	since, bucket, by string
	limit             int
}

func (a *app) log() *cobra.Command {
	var q question
	c := &cobra.Command{
		Use:   "log",
		Short: "Who spent it: the entries, oldest first, or their sums",
		Long: `log lists the charges that the ledger keeps (72 hours of them at least), oldest first, of every bucket of the
credential, or adds them up by a label.`,
		Example: `  quotactl log --since 1h
  quotactl log --since 48h --by method
  quotactl log --by label:team --bucket default
  quotactl log --since 2026-11-21T08:00:00Z -o json | jq '.entries[].units'`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			label, err := groupLabel(c, q.by)
			if err != nil {
				return err
			}
			if q.limit < 0 {
				return cli.Usagef("--limit %d: 1 or more, or 0 for all", q.limit)
			}
			return a.with(c.Context(), func(g *gate) error {
				entries, err := g.entries(c.Context(), q)
				if err != nil {
					return err
				}
				if label != "" {
					return a.printGroups(groupBy(q.by, label, entries))
				}
				return a.printEntries(entries)
			})
		},
	}
	c.Flags().StringVar(&q.since, "since", "",
		"only entries after this `TIME`: a duration before now (1h, 7d), or RFC 3339 (default all that are kept)")
	c.Flags().StringVar(&q.bucket, "bucket", "", "only of this `BUCKET`")
	c.Flags().StringVar(&q.by, "by", "", "add up by method, region, job or label:`NAME`")
	c.Flags().IntVar(&q.limit, "limit", 0, "only the newest `N` entries; 0 for all")
	return c
}

// chosen is the bucket asked for, or all buckets: those with a limit, then those that once may have
// had one.
func (g *gate) chosen(bucket string) ([]string, error) {
	all := g.Buckets()
	for _, b := range g.cfg.Costs.Buckets() {
		if !slices.Contains(all, b.Name) {
			all = append(all, b.Name)
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

// entries merges the logs of the buckets by time.
func (g *gate) entries(ctx context.Context, q question) ([]quota.Entry, error) {
	buckets, err := g.chosen(q.bucket)
	if err != nil {
		return nil, err
	}
	var since time.Time
	if q.since != "" {
		now, err := g.Ledger.Time(ctx)
		if err != nil {
			return nil, err
		}
		if since, err = parseTime(q.since, now, -1); err != nil {
			return nil, cli.Usagef("--since %s: write a duration such as 1h or 7d, or RFC 3339, "+
				"such as 2026-11-21T08:00:00Z", q.since)
		}
	}
	var all []quota.Entry
	for _, b := range buckets {
		some, err := g.Ledger.Entries(ctx, quota.Query{Credential: g.Credential, Bucket: b,
			Since: since, Limit: q.limit})
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b quota.Entry) int {
		return cmp.Or(a.At.Compare(b.At),
			cmp.Compare(a.ID, b.ID))
	})
	if q.limit > 0 && len(all) > q.limit {
		all = all[len(all)-q.limit:]
	}
	return all, nil
}

func (a *app) printEntries(entries []quota.Entry) error {
	list := entryList{Entries: make([]entry, len(entries))}
	for i, e := range entries {
		list.Entries[i] = entry{cli.Time(e.At), e.ID, e.Bucket, e.Units, e.Total,
			e.Labels.With(nil)}
	}
	return a.Print(a.stdout, list, func() error {
		s := a.screen()
		t := s.Table("at", "bucket", ">units", "method", "region", "labels", "id")
		for _, e := range list.Entries {
			method, region := e.Labels[quota.LabelMethod], e.Labels[quota.LabelRegion]
			t.AppendRow([]any{s.At(e.At), e.Bucket, s.Number(e.Units), method, region,
				otherLabels(e.Labels),
				e.ID})
		}
		return s.Draw(t, cli.Shorten("at"), cli.Cut("labels", 24), cli.Drop("id"),
			cli.Cut("labels", 10),
			cli.Cut("method", 12), cli.Cut("region", 6), cli.Cut("bucket", 8))
	})
}

// otherLabels are those that have no column of their own.
func otherLabels(labels quota.Labels) string {
	var parts []string
	for name, value := range labels {
		if name != quota.LabelMethod && name != quota.LabelRegion {
			parts = append(parts, name+"="+value)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
