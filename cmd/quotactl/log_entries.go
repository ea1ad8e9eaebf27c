package main

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"

	"quotabudget/internal/cli"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// eachEntry merges the logs of the buckets by time.
func (g *gate) eachEntry(ctx context.Context, q question, do func(quota.Entry) error) error {
	buckets, in, err := g.span(ctx, q)
	if err != nil {
		return err
	}
	queries := make([]quota.Query, len(buckets))
	for i, b := range buckets {
		queries[i] = quota.Query{Credential: g.Credential, Bucket: b, Since: in.Since,
			Until: in.Until, Limit: q.limit}
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

// printEntries writes entries as they come.
func (a *app) printEntries(table *costs.Table, each func(do func(quota.Entry) error) error) error {
	if a.InLines() {
		out := a.entryLines()
		err := each(func(e quota.Entry) error { return out.add(report.NewEntry(e)) })
		return cmp.Or(err, out.Flush())
	}
	items := func(do func(any) error) error {
		return each(func(e quota.Entry) error {
			return do(report.NewEntry(e))
		})
	}
	return a.PrintEach("entries", items, func() error {
		t := newEntryTable(a.Screen(), table)
		err := each(func(e quota.Entry) error { return t.add(report.NewEntry(e)) })
		return cmp.Or(err, t.draw())
	})
}

// entryTable is a table of entries.
type entryTable struct {
	*cli.Table
	screen  cli.Screen
	prices  *costs.Table
	pending int // rows that are not drawn yet
}

// rowsAtOnce bounds the rows in memory. Columns are as wide as the widest row so far.
const rowsAtOnce = 1000

func newEntryTable(s cli.Screen, prices *costs.Table) *entryTable {
	t := s.Table("at", "bucket", ">units", "method", "region", "labels", "id")
	return &entryTable{Table: t, screen: s, prices: prices}
}

// add appends an entry, and draws the table so far when it has many rows.
func (t *entryTable) add(e report.Entry) error {
	method, region := e.Labels[quota.LabelMethod], e.Labels[quota.LabelRegion]
	labels := labelText(without(e.Labels, quota.LabelMethod, quota.LabelRegion))
	if e.TakenBack {
		labels = "(taken back) " + labels
	}
	units := t.screen.Amount(report.UnitOf(t.prices, e.Bucket), e.Units)
	t.AppendRow([]any{t.screen.At(e.At), e.Bucket, units, method, region, labels, e.ID})
	if t.pending++; t.pending < rowsAtOnce {
		return nil
	}
	return t.draw()
}

func (t *entryTable) draw() error {
	t.pending = 0
	return t.screen.Draw(t.Table, cli.Shorten("at"), cli.Cut("labels", 24), cli.Drop("id"),
		cli.Cut("labels", 10), cli.Cut("method", 12), cli.Cut("region", 6), cli.Cut("bucket", 8))
}

// without returns the labels without the named ones.
func without(labels quota.Labels, names ...string) quota.Labels {
	others := labels.With(nil)
	for _, name := range names {
		delete(others, name)
	}
	return others
}

// entryLines prints entries in lines.
type entryLines struct{ *cli.Lines }

// columned are the labels with a column of their own in CSV.
var columned = []string{quota.LabelMethod, quota.LabelRegion, quota.LabelJob, quota.LabelSource}

func (a *app) entryLines() entryLines {
	columns := slices.Concat([]string{"at", "id", "bucket", "units", "total"}, columned,
		[]string{"labels"})
	return entryLines{a.Lines(columns...)}
}

func (l entryLines) add(e report.Entry) error {
	cells := []string{e.At.String(), e.ID, e.Bucket, strconv.FormatInt(e.Units, 10),
		strconv.FormatInt(e.Total, 10)}
	for _, name := range columned {
		cells = append(cells, e.Labels[name])
	}
	return l.Add(e, append(cells, without(e.Labels, columned...).Encode())...)
}

// labelTakenOff is the label, in the log as it is shown, of units that a correction has taken off
// entries. These have none of them any more, so the line itself is of 0 units.
const labelTakenOff = "taken_off"

// takings returns the corrections of a bucket as entries of its log.
func (g *gate) takings(ctx context.Context, q quota.Query) ([]quota.Entry, error) {
	list, err := g.Ledger.Takings(ctx, q)
	entries := make([]quota.Entry, len(list))
	for i, t := range list {
		entries[i] = quota.Entry{At: t.At, ID: t.ID, Bucket: t.Bucket,
			Labels: t.Labels.With(quota.Labels{labelTakenOff: strconv.FormatInt(t.Units, 10)})}
	}
	return entries, err
}

// each returns a list as an iterator that can be merged with logs.
func each(list []quota.Entry) iter.Seq2[quota.Entry, error] {
	return func(yield func(quota.Entry, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
}
