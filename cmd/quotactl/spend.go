package main

import (
	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
)

func (a *app) spend() *cobra.Command {
	var call quota.Call
	var quiet bool
	c := a.Command("spend", func(c *cobra.Command, _ []string) error {
		changed := c.Flags().Changed
		err := checkCall(call, call.Key, changed)
		if err == nil && !changed("method") && !changed("units") {
			err = cli.Usagef("give --method or --units")
		}
		if err != nil {
			return cli.Hint(err, "usage: %s", c.UseLine())
		}
		if !changed("method") && !changed("bucket") {
			call.Bucket = quota.DefaultBucket
		}
		return a.with(c.Context(), func(g *gate) error {
			if err := g.knows(call); err != nil {
				return err
			}
			d, err := g.Charge(c.Context(), call)
			p, verb := g.phrasing(c.Context(), call.Manual, d), "charged"
			p.dryRun, p.quiet = call.DryRun, quiet
			if call.DryRun && !d.Replayed && !d.Unmetered {
				verb = "dry run, nothing charged; it would take"
			}
			decided := err == nil && !d.Unmetered // the ledger answers
			if err = a.decided(verb, d, err, p); decided && !call.DryRun {
				a.notice(c.Context(), g, true)
			}
			return err
		})
	})
	flags := c.Flags()
	bindCall(flags, &call)
	cli.Flags(flags, "id", &call.Key, "dry-run", &call.DryRun, "manual", &call.Manual,
		"quiet,q", &quiet)
	return c
}

// knows refuses an unknown method or bucket, and suggests a known one.
func (g *gate) knows(call quota.Call) error {
	if call.Method == "" {
		return g.charged(call.Bucket)
	}
	m, err := g.prices().Lookup(call.Method)
	if err == nil && !m.Known() {
		return cli.Hint(cli.Usagef("what %s takes depends on the call", call.Method),
			"name the units: --bucket B --units N")
	}
	return err
}
