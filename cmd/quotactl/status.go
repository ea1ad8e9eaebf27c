package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

func (a *app) status() *cobra.Command {
	return a.Command("status", func(c *cobra.Command, _ []string) error {
		err := a.withLedger(c.Context(), func(src report.Source) error {
			list, err := src.Status(c.Context())
			if err != nil {
				return err
			}
			return a.Print(list, func(s cli.Screen) {
				statusTable(s, list)
				results, err := src.Forecasts(c.Context(), "")
				sayOutlook(s, results, err)
				// under cron, the environment may lack the variable that names the file
				file := "no configuration file: defaults"
				if list.Config != nil {
					file = "configuration " + *list.Config
				}
				s.Say("ledger %s\n%s\n", list.Ledger, file)
			})
		})
		if errors.Is(err, quota.ErrUnreachable) {
			return a.withoutLedger(c.Context(), err)
		}
		return err
	})
}

// withoutLedger adds to an error the units that may be spent without the ledger, if any.
func (a *app) withoutLedger(ctx context.Context, why error) error {
	cfg, err := a.Load(ctx)
	if err != nil {
		return why
	}
	outages, err := report.Source{Config: cfg}.Outages(ctx)
	if err != nil || len(outages) == 0 {
		return errors.Join(why, err)
	}
	var sentences []string
	for _, outage := range outages {
		sentences = append(sentences, outage.Text())
	}
	return cli.Hint(why, "%s", strings.Join(sentences, "; "))
}

// statusTable draws the table, and a note for each suspended bucket, for each estimate that may
// grow, and for each anchored window with a known end.
func statusTable(s cli.Screen, list report.Status) {
	drawStatus(s, list)
	for _, c := range list.Credentials {
		var all []string
		if text := report.DeniedJobs(c.Denied); text != "" {
			s.Say("%s: denied in the last 24h: %s (quotactl log --denied)\n", c.Credential, text)
		}
		for _, b := range c.Buckets {
			all = append(all, notes(s, c.At, b)...)
			more := func(other report.BucketStatus) bool {
				return other.Overshoot > b.Overshoot &&
					quota.WholeOf(other.Bucket) == quota.WholeOf(b.Bucket)
			}
			if b.Overshoot > 0 && !slices.ContainsFunc(c.Buckets, more) {
				all = append(all, fmt.Sprintf("%s: estimates of calls in flight can pass a limit by at "+
					"most %s", quota.WholeOf(b.Bucket), b.Counts.Text(b.Overshoot)))
			}
		}
		for i, note := range all {
			if !slices.Contains(all[:i], note) { // parts with the same bound
				s.Say("%s: %s\n", c.Credential, note)
			}
		}
		for _, bucket := range slices.Sorted(maps.Keys(c.LeftOut)) {
			s.Say("%s: and %d more parts of %s, which took less\n", c.Credential,
				c.LeftOut[bucket], bucket)
		}
	}
}

func notes(s cli.Screen, now time.Time, b report.BucketStatus) (all []string) {
	if !time.Time(b.SuspendedUntil).IsZero() {
		until := s.Until(time.Time(b.SuspendedUntil), now).Text
		all = append(all, b.Bucket+" is suspended "+b.Suspension.Text(until, s.Moment))
	}
	if b.AtMost > b.Held {
		all = append(all,
			fmt.Sprintf("%s: held %s, at most %s when the calls in flight are settled",
				b.Bucket, b.Counts.Text(b.Held), b.Counts.Text(b.AtMost)))
	}
	for _, l := range b.Limits {
		if l.Mode == "observe" {
			text := fmt.Sprintf("%s %s is only observed", b.Bucket, windowCell(l).Text)
			if l.Remaining == 0 {
				text += ", and would deny"
			}
			all = append(all, text)
		}
		if l.Others > 0 {
			all = append(all, fmt.Sprintf("%s %s: %s of the used units were used by other programs, "+
				"according to the upstream", b.Bucket, windowCell(l).Text, b.Counts.Text(l.Others)))
		}
		if from := time.Time(l.CountsFrom); !from.IsZero() {
			all = append(all, fmt.Sprintf("%s %s counts from %s: earlier entries are not kept any more",
				b.Bucket, windowCell(l).Text, s.Moment(from)))
		}
		if end := time.Time(l.ResetAt); !end.IsZero() && strings.HasPrefix(l.Window, "anchored ") {
			all = append(all, fmt.Sprintf("%s %s ends at %s, according to the upstream", b.Bucket,
				l.Window, s.Until(end, now).Text))
		}
	}
	return all
}

const barCells = 12

// statusRow is a limit in the table.
type statusRow struct {
	credential report.CredentialStatus
	bucket     report.BucketStatus
	limit      report.LimitStatus
}

// drawStatus draws the table. The headroom is always shown: without it, used and remaining would
// not add up to the limit. If its column does not fit, it moves into the limit's.
func drawStatus(s cli.Screen, list report.Status) {
	var rows []statusRow
	holds := false
	for _, c := range list.Credentials {
		for _, b := range c.Buckets {
			holds = holds || b.Held > 0
			for _, l := range b.Limits {
				rows = append(rows, statusRow{c, b, l})
			}
		}
	}
	t := cli.View(rows, func(r statusRow) cli.Row {
		c, b, l := r.credential, r.bucket, r.limit
		amount := func(n int64) string { return s.Amount(b.Counts, n) }
		name := c.Credential
		if c.Mode != "enforce" {
			name += " (" + c.Mode + ")"
		}
		remaining, limit := remainingCell(s, c, b, l), cli.Cell{Text: amount(l.Units)}
		if l.Headroom > 0 { // the short form is "scheduled+headroom"
			limit.Short = amount(l.Units-l.Headroom) + "+" + amount(l.Headroom)
		}
		return cli.Row{remaining.Color,
			"credential", name,
			"bucket", quota.ShownBucket(b.Bucket),
			"window", windowCell(l),
			"", s.Bar(l.Used+b.Held, l.Units, barCells),
			">used", amount(l.Used),
			">limit", limit,
			">headroom", amount(l.Headroom),
			">held", amount(b.Held),
			">remaining", remaining,
			"next free", s.Until(time.Time(l.NextFreeAt), c.At)}
	})
	steps := []cli.Step{cli.Shorten("next free")}
	if len(list.Credentials) == 1 && list.Credentials[0].Mode == "enforce" {
		steps = append(steps, cli.Drop("credential"))
	}
	steps = append(steps, cli.Drop(""), cli.Shorten("window"))
	if !holds {
		steps = append(steps, cli.Drop("held"))
	}
	steps = append(steps, cli.All(cli.Drop("headroom"), cli.Shorten("limit")))
	s.Draw(t, append(steps, cli.Cut("credential", 10), cli.Cut("bucket", 12),
		cli.Drop("next free"))...)
}

// windowCell returns the window of a limit. The short form omits its time zone.
func windowCell(l report.LimitStatus) cli.Cell {
	if l.Timezone == nil {
		return cli.Cell{Text: l.Window}
	}
	return cli.Cell{Text: l.Window + " " + *l.Timezone, Short: l.Window}
}

// remainingCell returns the units left under a limit of a bucket. On a terminal, it returns a word
// if none are left.
func remainingCell(s cli.Screen, c report.CredentialStatus, b report.BucketStatus,
	l report.LimitStatus) cli.Cell {
	switch {
	case !time.Time(b.SuspendedUntil).IsZero():
		return cli.Cell{Text: "suspended", Color: cli.Yellow}
	case l.Remaining > 0 || !s.Bars:
		return cli.Cell{Text: s.Amount(b.Counts, l.Remaining)}
	case l.Mode == "observe" || c.Mode == "observe":
		return cli.Cell{Text: "would deny", Color: cli.Yellow}
	case l.Units == 0:
		return cli.Cell{Text: "closed", Color: cli.Red}
	}
	return cli.Cell{Text: "exhausted", Color: cli.Red}
}
