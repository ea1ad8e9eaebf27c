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
		Long: `spend charges units before a call. It is allowed or denied in one step; a denied
charge takes nothing.

Make the call only if spend exits with 0. Exit code 75 means that the cost does not fit now; a line
on standard error says when it will. With --quiet nothing is printed when units were charged. Exit code 64 with "never": true means that it is larger than a limit.

With --dry-run the answer and the exit code are the same, but nothing is charged, and --id is not
used up.`,
		Example: `  quotactl spend --quiet --method youtube.videos.list && curl …
  quotactl spend --method youtube.search.list --count 3 --label job=backfill
  quotactl spend --units 50 --id upload-2026-11-21       once, if it is repeated
  quotactl spend --method youtube.videos.list --manual   may use the headroom
  quotactl spend --units 30 --dry-run                    would it fit?
  quotactl spend --method youtube.videos.list -o json | jq .retry_after_seconds`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkSpend(c, &call); err != nil {
				return err
			}
			return a.with(c.Context(), func(g *gate) error {
				if err := g.knows(call); err != nil {
					return err
				}
				d, err := g.Charge(c.Context(), call)
				of, verb := g.asked(call.Manual, d), "charged"
				of.dryRun, of.quiet = call.DryRun, quiet
				of.note = g.dayNote(c.Context(), call.Manual, d, of)
				if call.DryRun && !d.Replayed && !d.Unmetered {
					verb = "dry run, nothing charged; it would take"
				}
				return a.decided(verb, d, err, of)
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&call.Method, "method", "", "`METHOD` that will be called, which sets the cost")
	flags.Int64Var(&call.Count, "count", 1, "`N` calls of the method")
	flags.StringVar(&call.Bucket, "bucket", "",
		"`BUCKET` to take the units from (with --units; default \"default\")")
	flags.Int64Var(&call.Units, "units", 0, "`N` units to take")
	flags.StringVar(&call.Key, "id", "",
		"idempotency `KEY`: the same key again gets the same answer and charges nothing")
	flags.BoolVar(&call.DryRun, "dry-run", false, "decide, but charge nothing")
	bindManual(flags, &call.Manual)
	bindQuiet(flags, &quiet)
	bindLabels(flags, &call.Labels)
	return c
}

func checkSpend(c *cobra.Command, call *quota.Call) error {
	given := c.Flags().Changed
	usage := func(format string, args ...any) error {
		return cli.Hint(cli.Usagef(format, args...), "usage: %s", c.UseLine())
	}
	switch {
	case given("method") && (given("bucket") || given("units")):
		return usage("--method sets the cost: leave out --bucket and --units")
	case given("method") && call.Method == "":
		return usage("--method is empty")
	case !given("method") && !given("units"):
		return usage("give --method or --units")
	case !given("method") && given("count"):
		return usage("--count needs --method")
	case given("method") && call.Count < 1:
		return usage("--count %d: must be at least 1", call.Count)
	case given("units") && call.Units < 1:
		return usage("--units %d: must be at least 1", call.Units)
	case given("bucket") && call.Bucket == "":
		return usage("--bucket is empty")
	case given("id") && call.Key == "":
		return usage("--id is empty: leave it out, or give a key")
	}
	if !given("method") && !given("bucket") {
		call.Bucket = quota.DefaultBucket
	}
	return nil
}

// knows refuses an unknown method or bucket, and suggests a known one.
func (g *gate) knows(call quota.Call) error {
	if call.Method == "" {
		return g.charged(call.Bucket)
	}
	m, err := g.cfg.Table(g.cred).Lookup(call.Method)
	if err == nil && !m.Known() {
		return cli.Hint(cli.Usagef("what %s takes depends on the call", call.Method),
			"name the units: --bucket B --units N")
	}
	return err
}
