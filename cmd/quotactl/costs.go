package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

type priceList struct {
	Version string      `json:"version"`
	Profile string      `json:"profile"`
	Methods []pricing   `json:"methods"`
	Buckets []dailyUnit `json:"buckets"`
}

type pricing struct {
	Method string           `json:"method"`
	Route  string           `json:"route"`
	Cost   map[string]int64 `json:"cost"`
	Status string           `json:"status"`
	Source string           `json:"source"`
	Date   string           `json:"date"`
	Note   *string          `json:"note"`

	costs []quota.Cost
}

type dailyUnit struct {
	Bucket   string `json:"bucket"`
	Units    int64  `json:"units"`
	Timezone string `json:"timezone"`
}

func (a *app) costs() *cobra.Command {
	return &cobra.Command{
		Use:   "costs [METHOD]",
		Short: "Show the price list",
		Long: `costs shows what one call of each method takes from which buckets, and the source of
the figure. "unverified" means that no published source confirms it.`,
		Example: `  quotactl costs
  quotactl costs youtube.search.list
  quotactl costs -o json | jq '.methods[] | select(.cost.default > 50) | .method'`,
		Args: cli.Optional("METHOD"),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := a.Load(c.Context())
			if err != nil {
				return err
			}
			methods := cfg.Costs.Methods()
			if len(args) == 1 {
				m, err := cfg.Costs.Lookup(args[0])
				if err != nil {
					return err
				}
				methods = []costs.Method{m}
			}
			list := newPriceList(cfg.Costs, methods)
			return a.Print(list, func() error { return a.priceTable(list) })
		},
	}
}

func newPriceList(table *costs.Table, methods []costs.Method) priceList {
	list := priceList{Version: table.Version, Profile: table.ProfileName(), Methods: []pricing{},
		Buckets: []dailyUnit{}}
	for _, m := range methods {
		list.Methods = append(list.Methods, pricing{
			Method: m.ID, Route: m.Verb + " " + m.Path, Cost: quota.UnitsOf(m.Costs),
			Status: m.Source.Status,
			Source: m.Source.Text, Date: m.Source.Date, Note: report.OrNull(m.Note), costs: m.Costs,
		})
	}
	for _, b := range table.Buckets() {
		list.Buckets = append(list.Buckets, dailyUnit{b.Name, b.Daily, b.Reset.ZoneName()})
	}
	return list
}

func (a *app) priceTable(list priceList) error {
	s := a.Screen()
	t := s.Table("method", "cost", "status", "date", "source")
	for _, m := range list.Methods {
		source := m.Source
		if m.Note != nil {
			source += "; " + *m.Note
		}
		var parts []string
		for _, c := range m.costs {
			parts = append(parts, fmt.Sprintf("%d %s", c.Units, c.Bucket))
		}
		t.AppendRow([]any{m.Method, strings.Join(parts, " + "), m.Status, m.Date, source})
	}
	err := s.Draw(t, cli.Cut("source", 30), cli.Drop("date"), cli.Cut("source", 16),
		cli.Drop("source"))
	// whole, since the table may have cut it
	if err == nil && len(list.Methods) == 1 && s.Width > 0 {
		err = s.Say("\nsource: %s\n", list.Methods[0].Source)
		if note := list.Methods[0].Note; note != nil && err == nil {
			err = s.Say("note: %s\n", *note)
		}
	}
	return err
}
