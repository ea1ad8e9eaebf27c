package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/words"
)

// checkedList is what a price list without a mistake has.
type checkedList struct {
	File      string          `json:"file"`
	Upstreams []checkedPrices `json:"upstreams"`
}

type checkedPrices struct {
	Upstream   string `json:"upstream"`
	Methods    int    `json:"methods"`
	Buckets    int    `json:"buckets"`
	Unverified int    `json:"unverified"` // methods
}

func (a *app) costsCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Say what is wrong with a price list, by line",
		Long: `check reads a price list, and the files that it names, and reports everything that is
wrong with them: unknown keys, buckets and names in expressions, costs below 0, routes that two
methods share, figures without a source. It exits with 78 then.`,
		Example: `  quotactl costs check costs.yaml
  quotactl costs check costs/anthropic.yaml -o json`,
		Args: cli.Args("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			list, err := config.Prices(c.Context(), args[0])
			if err != nil {
				return err
			}
			out := checkedList{File: args[0], Upstreams: []checkedPrices{}}
			for _, name := range list.Upstreams() {
				out.Upstreams = append(out.Upstreams, checkedTable(list, name))
			}
			return a.Print(out, func() error { return a.sayChecked(out) })
		},
	}
}

func checkedTable(list *costs.List, name string) checkedPrices {
	table, err := list.Upstream(name)
	if err != nil {
		return checkedPrices{Upstream: name} // it is one of the list's own names
	}
	out := checkedPrices{Upstream: name, Methods: len(table.Methods()),
		Buckets: len(table.Buckets())}
	for _, m := range table.Methods() {
		if m.Source.Status == "unverified" {
			out.Unverified++
		}
	}
	return out
}

func (a *app) sayChecked(list checkedList) error {
	s := a.Screen()
	t := s.Table("upstream", "methods", "unverified", "buckets")
	for _, u := range list.Upstreams {
		t.AppendRow([]any{u.Upstream, u.Methods, u.Unverified, u.Buckets})
	}
	if err := s.Draw(t); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Stderr, "%s has no mistakes\n", words.Plain(list.File))
	return err
}
