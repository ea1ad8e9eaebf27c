package main

import (
	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/job"
	"quotabudget/internal/quota"
)

func (a *app) draw() *cobra.Command {
	var labels quota.Labels
	c := &cobra.Command{
		Use:   "draw ID UNITS",
		Short: "Charge units of a reservation",
		Example: `  quotactl draw default.06fmjq2kx4a9bc 50
  quotactl draw default.06fmjq2kx4a9bc 50 --label region=BR`,
		Args: cli.Args("ID", "UNITS"),
		RunE: func(c *cobra.Command, args []string) error {
			units, err := parseUnits(args[1])
			if err != nil {
				return err
			}
			ofJob, err := quota.ParseLabels(a.Getenv(job.EnvLabels)) // whose command draws
			if err != nil {
				return cli.Usagef("%s: %w", job.EnvLabels, err)
			}
			labels = ofJob.With(labels)
			return a.with(c.Context(), func(g *gate) error {
				d, err := g.Draw(c.Context(), args[0], units, labels)
				return a.decided("drew", d, err, g.asked(false, d))
			})
		},
	}
	bindLabels(c.Flags(), &labels)
	return c
}
