package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
)

type groupList struct {
	By   string     `json:"by"`
	Rows []groupRow `json:"rows"`
}

type groupRow struct {
	Key     string `json:"key"` // "" for entries without the label
	Units   int64  `json:"units"`
	Entries int64  `json:"entries"`
}

// groupLabel is the label of --by; "" if it is not given.
func groupLabel(c *cobra.Command, by string) (string, error) {
	if !c.Flags().Changed("by") {
		return "", nil
	}
	if name, ok := strings.CutPrefix(by, "label:"); ok {
		if err := (quota.Labels{name: "x"}).Check(); err != nil {
			return "", cli.Usagef("--by label:%s: not the name of a label", name)
		}
		return name, nil
	}
	known := []string{quota.LabelMethod, quota.LabelRegion, quota.LabelJob}
	if !slices.Contains(known, by) {
		return "", cli.Usagef("--by %s: write method, region, job or label:NAME", by)
	}
	return by, nil
}

// groups adds up by the value of a label, the largest sum first. The ledger's sums do not have the
// run, and there are none of the newest N entries: for these, the entries are read.
func (g *gate) groups(ctx context.Context, q question, label string) (groupList, error) {
	rows := make(map[string]groupRow)
	add := func(key string, units, entries int64) {
		rows[key] = groupRow{key, rows[key].Units + units, rows[key].Entries + entries}
	}
	var err error
	if q.limit > 0 || label == quota.LabelRun {
		err = g.eachEntry(ctx, q, func(e quota.Entry) error {
			add(e.Labels[label], e.Units, 1)
			return nil
		})
	} else {
		err = g.eachSum(ctx, q, func(s quota.Sum) { add(s.Labels[label], s.Units, s.Charges) })
	}
	list := groupList{By: q.by, Rows: []groupRow{}}
	for _, row := range rows {
		list.Rows = append(list.Rows, row)
	}
	slices.SortFunc(list.Rows, func(a, b groupRow) int {
		return cmp.Or(cmp.Compare(b.Units, a.Units), cmp.Compare(a.Key, b.Key))
	})
	return list, err
}

func (g *gate) eachSum(ctx context.Context, q question, do func(quota.Sum)) error {
	buckets, since, err := g.span(ctx, q)
	if err != nil {
		return err
	}
	for _, b := range buckets {
		sums, err := quota.SumsAfter(ctx, g.Ledger,
			quota.SumQuery{Credential: g.Credential, Bucket: b, Since: since})
		if err != nil {
			return err
		}
		for _, s := range sums {
			do(s)
		}
	}
	return nil
}

func (a *app) printGroups(list groupList) error {
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
