package main

import (
	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
)

type released struct {
	Reservation string           `json:"reservation"`
	Released    int64            `json:"released"` // in all buckets
	Units       map[string]int64 `json:"units"`    // by bucket
}

func (a *app) release() *cobra.Command {
	return &cobra.Command{
		Use:     "release ID",
		Short:   "Give back what is left of a reservation",
		Example: `  quotactl release default.06fmjq2kx4a9bc`,
		Args:    cli.Args("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(g *gate) error {
				given, err := g.Release(c.Context(), args[0])
				if err != nil {
					return err
				}
				var sum int64
				for _, units := range given {
					sum += units
				}
				return a.Print(released{args[0], sum, given}, func() error {
					return a.Screen().Say("released %d units of %s\n", sum, args[0])
				})
			})
		},
	}
}
