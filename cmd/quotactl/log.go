package main

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

// focus is the output format for charges in the FOCUS format.
const focus = "focus"

type question struct {
	since, until, bucket, by string
	limit                    int
	follow, all              bool // all: neither --since nor --limit is given
	denied                   bool

	label string // that by names
	bare  bool   // by is the name of a label alone
}

func (a *app) log() *cobra.Command {
	var q question
	c := a.Command("log", func(c *cobra.Command, _ []string) error {
		q.all = !c.Flags().Changed("since") && !c.Flags().Changed("limit")
		if err := a.checkLog(&q, c.Flags().Changed("by")); err != nil {
			return err
		}
		return a.with(c.Context(), func(g *gate) error {
			switch {
			case q.follow:
				return a.follow(c.Context(), g, q)
			case q.denied:
				return a.printDenials(c.Context(), g, q)
			case q.label != "":
				return a.printGroups(c.Context(), g, q)
			}
			entries, err := g.entries(c.Context(), q)
			if err != nil {
				return err
			}
			if a.Output == focus {
				return a.printFocus(g, entries)
			}
			shown := cli.Each(entries, report.NewEntry)
			if a.InLines() {
				return a.printEntryLines(new(cli.Table), shown)
			}
			return a.Print(object{"entries", shown}, func(s cli.Screen) {
				drawEntries(s, new(cli.Table), g.prices(), shown)
			})
		})
	})
	cli.Flags(c.Flags(), "since", &q.since, "until", &q.until, "bucket", &q.bucket,
		"by", onceFlag{&q.by}, "limit", &q.limit, "denied", &q.denied, "follow,f", &q.follow)
	cli.Limit(c.Flags(), 0, math.MaxInt64, "limit")
	a.PrintsLines(c, focus)
	return c
}

// checkLog checks the flags as far as possible without a ledger.
func (a *app) checkLog(q *question, grouped bool) (err error) {
	if q.denied && !grouped {
		q.by, grouped = quota.LabelJob, true
	}
	if q.denied && q.by == report.ByHour {
		q.label, grouped = report.ByHour, false
	}
	if grouped {
		if q.label, q.bare, err = parseBy(q.by); err != nil {
			return err
		}
	}
	switch {
	case q.denied && (q.follow || q.limit != 0):
		return cli.Usagef("--denied counts entries: leave out --follow and --limit")
	case q.follow && q.label != "":
		return cli.Usagef("--follow lists entries and --by sums them: use one of them")
	case a.Output == focus && (q.follow || q.denied || q.label != ""):
		return cli.Usagef("-o focus lists entries: leave --follow, --denied and --by out")
	case q.follow && q.until != "":
		return cli.Usagef("--follow never ends: leave out --until")
	case q.follow && a.Output == "yaml":
		return cli.Usagef("--follow has no end, a list in YAML has: use -o jsonl or -o csv")
	}
	return nil
}

// chosen returns the named bucket or, for "", all buckets: first those with a limit, then the rest
// of the price list's, then those only in the ledger.
func (g *gate) chosen(ctx context.Context, bucket string) ([]string, error) {
	all := report.LogBuckets(g.cfg, g.cred, g.Buckets())
	totals, err := g.Ledger.BucketsOf(ctx, g.Credential)
	if err != nil {
		return nil, err
	}
	for _, b := range quota.BucketNames(totals) {
		if !slices.Contains(all, b) && (b == bucket || !quota.IsLabelBucket(b)) {
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

// span returns the buckets to read, and the period of --since and --until.
func (g *gate) span(ctx context.Context, q question) (buckets []string, in report.Span,
	err error) {
	if buckets, err = g.chosen(ctx, q.bucket); err != nil || cmp.Or(q.since, q.until) == "" {
		return buckets, in, err
	}
	now, err := g.Ledger.Time(ctx)
	if err != nil {
		return buckets, in, err
	}
	in, err = spanOf(q.since, q.until, now)
	return buckets, in, err
}

// spanOf reads --since and --until.
func spanOf(since, until string, now time.Time) (in report.Span, err error) {
	read := func(flag, text string) (at time.Time) {
		if text == "" || err != nil {
			return at
		}
		at, err = parseTime(flag, text, now, -1)
		return at
	}
	in = report.Span{Since: read("since", since), Until: read("until", until)}
	if err == nil && until != "" && in.Until.Before(in.Since) {
		err = cli.Usagef("--until %s is before --since %s", until, since)
	}
	return in, err
}

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

// printGroups prints a block for each bucket, with its total.
func (a *app) printGroups(ctx context.Context, g *gate, q question) error {
	list, err := g.groups(ctx, q)
	if err != nil {
		return err
	}
	has := func(row report.Group) bool { return row.Key != "" }
	if q.bare && len(list.Rows) > 0 && !slices.ContainsFunc(list.Rows, has) { // probably mistyped
		labels := []string{quota.LabelMethod, quota.LabelRegion, quota.LabelJob, quota.LabelSource}
		return cli.Hint(cli.Usagef("--by %s: no entry has such a label%s", q.by,
			words.DidYouMean(q.by, labels)),
			"write method, region, job, source, or label:%s to use it anyway", q.by)
	}
	if a.InLines() {
		return a.PrintLines(cli.View(list.Rows, func(r report.Group) cli.Row {
			return cli.Row{"key", r.Key, "units", r.Units, "entries", r.Entries, "bucket", r.Bucket}
		}))
	}
	return a.Print(list, func(s cli.Screen) {
		var shown []report.Group // rows of each bucket, followed by their total
		rows := list.Rows
		for _, total := range list.Totals() {
			for ; len(rows) > 0 && rows[0].Bucket == total.Bucket; rows = rows[1:] {
				shown = append(shown, rows[0])
			}
			shown = append(shown, total)
		}
		if shown == nil {
			shown = []report.Group{{Key: "total"}}
		}
		t := cli.View(shown, func(g report.Group) cli.Row {
			return cli.Row{list.By, cmp.Or(g.Key, "(none)"), "bucket", g.Bucket,
				">units", s.Amount(g.Counts, g.Units), ">entries", g.Entries}
		})
		s.Draw(t, cli.Cut(list.By, 12), cli.Cut("bucket", 12))
	})
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
		return a.PrintLines(cli.View(list.Rows, func(r report.DenialRow) cli.Row {
			return cli.Row{"key", r.Key, "bucket", r.Bucket, "denials", r.Denials, "units", r.Units,
				"limit", r.Limit, "last_at", time.Time(r.LastAt).Format(time.RFC3339)}
		}))
	}
	return a.Print(list, func(s cli.Screen) {
		if len(list.Rows) == 0 {
			s.Say("nothing was denied\n")
			return
		}
		t := cli.View(list.Rows, func(r report.DenialRow) cli.Row {
			key := cli.Cell{Text: cmp.Or(r.Key, "(none)")}
			if at, err := time.Parse(time.RFC3339, r.Key); err == nil && q.label == report.ByHour {
				key = s.On(at)
			}
			return cli.Row{q.by, key, "bucket", r.Bucket, ">denials", r.Denials,
				">units", s.Amount(report.UnitOf(g.prices(), r.Bucket), r.Units), "limit", r.Limit,
				"last", s.On(time.Time(r.LastAt).Truncate(time.Second))}
		})
		s.Draw(t, cli.Shorten("last"), cli.Drop("bucket"), cli.Cut("limit", 14),
			cli.Cut(q.by, 12))
	})
}
