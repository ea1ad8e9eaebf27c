package main

import (
	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
)

func (a *app) draw() *cobra.Command {
	var labels []string
	c := &cobra.Command{
		Use:   "draw ID UNITS",
		Short: "Charge units that were set aside",
		Example: `  quotactl draw default.06fmjq2kx4a9bc 50
  quotactl draw default.06fmjq2kx4a9bc 50 --label region=BR`,
		Args: cli.Args("ID", "UNITS"),
		RunE: func(c *cobra.Command, args []string) error {
			units, err := parseUnits(args[1])
			if err != nil {
				return err
			}
			with, err := parseLabels(labels)
			if err != nil {
				return err
			}
			return a.with(c.Context(), func(g *gate) error {
				d, err := g.Draw(c.Context(), args[0], units, with)
				return a.spent("drew", d, err, asked{})
			})
		},
	}
	c.Flags().StringArrayVar(&labels, "label", nil,
		"`NAME=VALUE` to keep with the entry; can be repeated")
	return c
}
