package main

import (
	"context"
	"errors"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// correction is a correction that the flags of adjust describe.
type correction struct {
	bucket, reason, by, at, key string
	units                       int64
	dryRun                      bool
}

func (a *app) adjust() *cobra.Command {
	var q correction
	c := a.Command("adjust", func(c *cobra.Command, _ []string) error {
		if err := q.check(c); err != nil {
			return err
		}
		return a.with(c.Context(), func(g *gate) error {
			adjustment, err := g.correcting(c.Context(), q)
			if err != nil {
				return err
			}
			d, err := g.Ledger.Adjust(c.Context(), adjustment)
			switch {
			case errors.Is(err, quota.ErrSpanShort):
				return cli.Hint(err, "the day began at %s; quotactl log --bucket %s shows what was charged",
					words.Moment(adjustment.After), q.bucket)
			case errors.Is(err, quota.ErrNoEntry):
				return cli.Hint(err, "name a later time with --at, or none")
			case err != nil:
				return err
			}
			return a.adjusted(adjustment, d, g.phrasing(c.Context(), false, d))
		})
	})
	flags := c.Flags()
	cli.Flags(flags, "bucket", &q.bucket, "units", &q.units, "reason", &q.reason, "at", &q.at,
		"by", &q.by, "id", &q.key, "dry-run", &q.dryRun)
	return c
}

func (q *correction) check(c *cobra.Command) error {
	switch {
	case q.bucket == "":
		return misuse(c, "--bucket is missing")
	case !c.Flags().Changed("units"):
		return misuse(c, "--units is missing")
	case q.units == 0:
		return misuse(c, "--units 0: there is nothing to correct")
	case q.reason == "":
		return misuse(c, "--reason is missing: the log keeps why")
	case c.Flags().Changed("id") && q.key == "":
		return misuse(c, "--id is empty: leave it out, or give a key")
	case q.by == "":
		if q.by = userName(); q.by == "" {
			return misuse(c, "--by is missing, and this user has no name")
		}
	}
	return nil
}

// userName returns the name of the user who runs the program; "" if the system has none.
func userName() string {
	me, err := user.Current()
	if err != nil {
		return ""
	}
	return me.Username
}

// correcting returns the correction to request from the ledger. It covers only entries of the same
// upstream day as its time.
func (g *gate) correcting(ctx context.Context, q correction) (quota.Adjust, error) {
	if _, err := g.chosen(ctx, q.bucket); err != nil {
		return quota.Adjust{}, err
	}
	now, err := g.Ledger.Time(ctx)
	if err != nil {
		return quota.Adjust{}, err
	}
	a := quota.Adjust{
		Credential: g.Credential, ID: quota.NewID(time.Now()), Key: q.key, Bucket: q.bucket,
		Units: q.units, Limits: g.LimitsOn(q.bucket), DryRun: q.dryRun,
		Labels: quota.Labels{quota.LabelSource: "adjust", quota.LabelReason: q.reason,
			quota.LabelBy: q.by},
	}
	at := now
	if q.at != "" {
		if at, err = parseTime("at", q.at, now, -1); err != nil {
			return a, err
		}
		switch {
		case at.After(now):
			return a, cli.Usagef("--at %s is in the future", q.at)
		case now.Sub(at) > quota.RetentionFor(a.Limits):
			return a, cli.Usagef("--at %s: entries are kept for %s", q.at,
				words.Span(quota.RetentionFor(a.Limits)))
		}
		a.Until = at
	}
	begin, _ := g.prices().Reset(q.bucket).Bounds(at)
	a.After = begin.Add(-time.Microsecond)
	if !a.Until.IsZero() && !a.Until.After(a.After) {
		a.Until = begin
	}
	return a, nil
}

func (a *app) adjusted(q quota.Adjust, d quota.Decision, p phrasing) error {
	out := object{"bucket", q.Bucket, "units", q.Units, "at", words.Time(d.At),
		"entry", words.OrNull(d.Entry), "by", q.Labels[quota.LabelBy],
		"reason", q.Labels[quota.LabelReason]}
	return a.Print(out.NonEmpty("replayed", d.Replayed, "dry_run", q.DryRun), func(s cli.Screen) {
		verb, would, units := "added ", "add ", q.Units
		if units < 0 {
			verb, would, units = "taken off: ", "take off ", -units
		}
		switch {
		case d.Replayed:
			verb = "already done with this key: " + verb
		case q.DryRun:
			verb = "dry run, nothing changed; it would " + would
		}
		text := verb + p.inWords(map[string]int64{q.Bucket: units})
		if d.Entry != "" {
			text += ", at " + s.Moment(d.At) + "\nentry " + d.Entry
		}
		s.Say("%s\n", text)
	})
}
