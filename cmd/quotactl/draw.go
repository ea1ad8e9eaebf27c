package main

import (
	"errors"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/job"
	"quotabudget/internal/quota"
)

func (a *app) draw() *cobra.Command {
	var labels quota.Labels
	var quiet bool
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
				if errors.Is(err, quota.ErrReservationShort) && a.Getenv(job.EnvMax) != "" {
					d, err = ceilingDenies(args[0], units), nil
				}
				of := g.asked(false, d)
				of.quiet = quiet
				return a.decided("drew", d, err, of)
			})
		},
	}
	bindLabels(c.Flags(), &labels)
	bindQuiet(c.Flags(), &quiet)
	return c
}

// ceilingDenies returns the denial of a draw beyond exec --max: a run never holds more than its
// ceiling.
func ceilingDenies(reservation string, units int64) quota.Decision {
	_, buckets, _ := quota.ParseReservation(reservation)
	return quota.Decision{Units: map[string]int64{buckets[0]: units}, Limit: quota.RunMax}
}
