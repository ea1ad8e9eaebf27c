package main

import (
	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
)

func (a *app) spend() *cobra.Command {
	var call quota.Call
	var quiet bool
	c := &cobra.Command{
		Use:   "spend {--method M [--count N] | --bucket B --units N} [--dry-run]",
		Short: "Charge units before a call",
		Long: `spend charges units before a call, in one step; a denied charge takes nothing. Make
the call only if spend exits with 0. Exit code 75 means that the cost does not fit now; a line on
standard error says when it will. Exit code 64 with "never": true means that it is larger than a
limit.

With --dry-run the answer and the exit code are the same, but nothing is charged, and --id is not
used up.`,
		Example: `  quotactl spend --quiet --method youtube.videos.list && curl …
  quotactl spend --method youtube.search.list --count 3 --label job=backfill
  quotactl spend --units 50 --id upload-2026-11-21       once, if it is repeated
  quotactl spend --units 30 --dry-run                    would it fit?
  quotactl spend --method youtube.videos.list -o json | jq .retry_after_seconds`,
		RunE: func(c *cobra.Command, _ []string) error {
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
		},
	}
	flags := c.Flags()
	bindCall(flags, &call)
	flags.StringVar(&call.Key, "id", "",
		"idempotency `KEY`: repeating the key returns the same decision and charges nothing")
	flags.BoolVar(&call.DryRun, "dry-run", false, "decide, but charge nothing")
	bindManual(flags, &call.Manual)
	bindQuiet(flags, &quiet)
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
