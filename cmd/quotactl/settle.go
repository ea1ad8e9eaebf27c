package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
)

func (a *app) settle() *cobra.Command {
	var labels quota.Labels
	c := &cobra.Command{
		Use:   "settle ID BUCKET=UNITS...",
		Short: "Book what a call really took of a reservation, more or less than that",
		Long: `settle ends a reservation: in each bucket it charges what was used, and gives the rest
back. What was used beyond the reservation is charged, too, whatever the limits say: it has been
billed. A bucket that is not named settles as it was set aside.

A reservation that has lapsed into a charge (reserve --lapse charge) can still be settled: what was
not used is taken off that charge. commit is for reservations that may not be exceeded.`,
		Example: `  quotactl settle default.06fmjq2kx4a9bc default=640
  quotactl settle input+output.06fmjq2kx4a9bc input=1200 output=85`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Hint(cli.Usagef("settle needs the ID of a reservation and BUCKET=UNITS"),
					"quotactl reservations lists them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			costs, err := parseCosts(args[1:])
			if err != nil {
				return err
			}
			return a.with(c.Context(), func(g *gate) error {
				d, err := g.Settle(c.Context(), args[0], quota.Call{Costs: costs, Labels: labels})
				if errors.Is(err, quota.ErrKeyReused) {
					err = cli.Hint(err, "it was settled with other units, which quotactl log shows")
				}
				return a.decided("settled", d, err, g.asked(false, d))
			})
		},
	}
	bindLabels(c.Flags(), &labels)
	return c
}

// parseCosts reads arguments such as output=85.
func parseCosts(args []string) (costs []quota.Cost, err error) {
	for _, arg := range args {
		bucket, number, ok := strings.Cut(arg, "=")
		units, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil || units < 0 {
			return nil, cli.Usagef("%q is not BUCKET=UNITS, such as output=85", arg)
		}
		costs = append(costs, quota.Cost{Bucket: bucket, Units: units})
	}
	return costs, nil
}
