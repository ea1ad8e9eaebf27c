package main

import (
	"errors"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
)

func (a *app) commit() *cobra.Command {
	var units int64
	var labels quota.Labels
	c := &cobra.Command{
		Use:   "commit ID",
		Short: "Settle a reservation: charge what was used of it, give the rest back",
		Example: `  quotactl commit default.06fmjq2kx4a9bc                everything left was used
  quotactl commit default.06fmjq2kx4a9bc --units 120   120 were used
  quotactl commit default.06fmjq2kx4a9bc --label region=BR`,
		Args: cli.Args("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("units") {
				units = quota.AllUnits
			} else if units < 0 {
				return cli.Usagef("--units %d: must be 0 or more", units)
			}
			return a.with(c.Context(), func(g *gate) error {
				g.Labels = g.Labels.With(labels)
				d, err := g.Commit(c.Context(), args[0], units)
				if errors.Is(err, quota.ErrKeyReused) {
					err = cli.Hint(err, "it was settled with other units or labels, which "+
						"quotactl log shows")
				}
				return a.decided("committed", d, err, g.asked(false, d))
			})
		},
	}
	c.Flags().Int64Var(&units, "units", 0, "`N` units were used (default all that is left)")
	bindLabels(c.Flags(), &labels)
	return c
}
