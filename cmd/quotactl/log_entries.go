package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"quotabudget/internal/cli"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// entries returns the entries and corrections of the buckets, oldest first.
func (g *gate) entries(ctx context.Context, q question) ([]quota.Entry, error) {
	buckets, in, err := g.span(ctx, q)
	if err != nil {
		return nil, err
	}
	var all []quota.Entry
	for _, b := range buckets {
		query := quota.Query{Credential: g.Credential, Bucket: b, Since: in.Since,
			Until: in.Until, Limit: q.limit}
		some, err := g.Ledger.Entries(ctx, query)
		if err != nil {
			return nil, err
		}
		corrections, err := g.takings(ctx, query)
		if err != nil {
			return nil, err
		}
		all = slices.Concat(all, some, corrections)
	}
	slices.SortStableFunc(all, func(a, b quota.Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	if q.limit > 0 {
		all = all[max(0, len(all)-q.limit):]
	}
	return all, nil
}

func shownEntries(entries []quota.Entry) []report.Entry {
	shown := make([]report.Entry, len(entries))
	for i, e := range entries {
		shown[i] = report.NewEntry(e)
	}
	return shown
}

func (a *app) printEntries(table *costs.Table, entries []quota.Entry) error {
	shown := shownEntries(entries)
	if a.InLines() {
		return a.entryLines().print(shown)
	}
	return a.Print(map[string][]report.Entry{"entries": shown}, func(s cli.Screen) {
		newEntryTable(s, table).draw(s, shown)
	})
}

// entryTable is a table of entries.
type entryTable struct {
	*cli.Table
	prices *costs.Table
}

func newEntryTable(s cli.Screen, prices *costs.Table) *entryTable {
	t := s.Table("at", "bucket", ">units", "method", "region", "labels", "id")
	return &entryTable{t, prices}
}

func (t *entryTable) draw(s cli.Screen, entries []report.Entry) {
	for _, e := range entries {
		method, region := e.Labels[quota.LabelMethod], e.Labels[quota.LabelRegion]
		labels := labelText(without(e.Labels, quota.LabelMethod, quota.LabelRegion))
		if e.TakenBack {
			labels = "(taken back) " + labels
		}
		units := s.Amount(report.UnitOf(t.prices, e.Bucket), e.Units)
		t.Row(s.At(e.At), e.Bucket, units, method, region, labels, e.ID)
	}
	s.Draw(t.Table, cli.Shorten("at"), cli.Cut("labels", 24), cli.Drop("id"),
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

// columned are the labels with their own column in CSV.
var columned = []string{quota.LabelMethod, quota.LabelRegion, quota.LabelJob, quota.LabelSource}

func (a *app) entryLines() entryLines {
	columns := slices.Concat([]string{"at", "id", "bucket", "units", "total"}, columned,
		[]string{"labels"})
	return entryLines{a.Lines(columns...)}
}

func (l entryLines) print(entries []report.Entry) (err error) {
	for _, e := range entries {
		cells := []string{e.At.String(), e.ID, e.Bucket, strconv.FormatInt(e.Units, 10),
			strconv.FormatInt(e.Total, 10)}
		for _, name := range columned {
			cells = append(cells, e.Labels[name])
		}
		err = cmp.Or(err, l.Add(e, append(cells, without(e.Labels, columned...).Encode())...))
	}
	return cmp.Or(err, l.Flush())
}

// labelTakenOff labels, in the printed log, a correction that took units off earlier entries. Those
// entries already lack the units, so the correction's line has 0 units.
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
