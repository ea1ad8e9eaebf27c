package main

import (
	"cmp"
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

// groupLabel is the label that --by means; "" when it is not given.
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

// groupBy adds up the entries by the value of a label, the largest sum first.
func groupBy(by, label string, entries []quota.Entry) groupList {
	rows := make(map[string]groupRow)
	for _, e := range entries {
		row := rows[e.Labels[label]]
		row.Units += e.Units
		row.Entries++
		rows[e.Labels[label]] = row
	}
	list := groupList{By: by, Rows: []groupRow{}}
	for key, row := range rows {
		row.Key = key
		list.Rows = append(list.Rows, row)
	}
	slices.SortFunc(list.Rows, func(a, b groupRow) int {
		return cmp.Or(cmp.Compare(b.Units,
			a.Units), cmp.Compare(a.Key, b.Key))
	})
	return list
}

func (a *app) printGroups(list groupList) error {
	return a.Print(a.stdout, list, func() error {
		s := a.screen()
		t := s.Table(list.By, ">units", ">entries")
		var units, entries int64
		for _, row := range list.Rows {
			key := row.Key
			if key == "" {
				key = "(none)"
			}
			t.AppendRow([]any{key, s.Number(row.Units), s.Number(row.Entries)})
			units, entries = units+row.Units, entries+row.Entries
		}
		t.AppendRow([]any{"total", s.Number(units), s.Number(entries)})
		return s.Draw(t, cli.Cut(list.By, 12))
	})
}
