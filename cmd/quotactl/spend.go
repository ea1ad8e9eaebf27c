package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
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
			if call.DryRun && !d.Replayed {
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
		return cli.Hint(cli.Usagef("the cost of %s depends on the call", call.Method),
			"name the units: --bucket B --units N")
	}
	return err
}

// answer prints a decision: for programs the value printed, for people the text of say. It returns
// a denial as its exit code. A charge that can never fit is an error, which is also printed for
// programs.
func (a *app) answer(d quota.Decision, err error, printed any, say func(cli.Screen)) error {
	if err == nil || d.Never && a.Output != "table" {
		if err := a.Print(printed, say); err != nil {
			return err
		}
	}
	if err == nil && !d.Allowed {
		return &cli.Coded{Code: cli.ExitExhausted}
	}
	exceeds, ok := errors.AsType[*quota.CostExceedsLimitError](err)
	if ok && exceeds.Units <= exceeds.Limit.Units {
		return cli.Hint(err, "a person may use the headroom with --manual")
	}
	return err
}

// phrasing holds the parts of a decision's sentence.
type phrasing struct {
	dryRun   bool
	quiet    bool   // print no text if the charge is allowed
	headroom bool   // there is a headroom, and the caller may use it
	hint     string // command to type after a denial; "" for none
	note     string // why the charge is denied although the upstream's day has room; or ""

	unit func(bucket string) costs.Unit // nil for units
}

func (g *gate) phrasing(ctx context.Context, manual bool, d quota.Decision) phrasing {
	unit := func(bucket string) costs.Unit { return report.UnitOf(g.prices(), bucket) }
	hasHeadroom := func(l quota.Limit) bool { return l.Headroom > 0 && d.Units[l.Bucket] > 0 }
	p := phrasing{unit: unit, headroom: manual && slices.ContainsFunc(g.Limits, hasHeadroom)}
	if room, remedy := g.DayRoom(ctx, manual, d, p.amount); room != "" {
		p.note = room + ". T" + strings.TrimPrefix(remedy, "t")
	}
	for _, l := range slices.Concat(g.Limits, g.Paces) {
		if n := d.Units[l.Bucket]; n > 0 && (l.Name() == d.Limit || d.Limit == quota.Suspended) {
			p.hint = hintFor(l.Bucket, n, manual, d.Limit == quota.Suspended)
			break
		}
	}
	name, _, _ := strings.Cut(d.Limit, " ")
	name = strings.TrimSuffix(name, "(none)")
	if bucket, label, value, ok := quota.ParseLabelBucket(name); ok && value != "" {
		p.hint = hintFor(bucket, d.Units[bucket], manual, false, "--label "+label+"="+value)
	} else if ok {
		p.hint = hintFor(bucket, d.Units[bucket], manual, false)
	}
	return p
}

func hintFor(bucket string, units int64, manual, suspended bool, flags ...string) string {
	if suspended {
		return "if its quota is available again: quotactl resume --bucket " + bucket
	}
	command := fmt.Sprintf("quotactl explain --bucket %s --units %d", bucket, units)
	if manual {
		command += " --manual"
	}
	command = strings.Join(append([]string{command}, flags...), " ")
	return command + " shows who spent the units"
}

// sentence describes a decision: the charge, or the reason for the denial.
func sentence(s cli.Screen, verb string, d quota.Decision, p phrasing) string {
	if d.Allowed {
		return allowed(s, verb, d, p)
	}
	if d.Limit == quota.RunMax {
		return "denied: " + p.inWords(d.Units) + ": beyond the ceiling of this run (--max)"
	}
	text := "denied: " + p.inWords(d.Units) + " would not fit under " + d.Limit
	if d.Limit == quota.Suspended {
		text = "denied: " + p.inWords(d.Units) +
			", but the bucket is suspended (quotactl status shows by whom and why)"
	}
	if len(d.Remaining) > 0 {
		text += "; " + left(d, p)
	}
	if !d.RetryAt.IsZero() {
		text += fmt.Sprintf("\nretry in %s, at %s", words.Span(d.RetryAfter()), s.Moment(d.RetryAt))
	}
	if p.note != "" {
		text += "\n" + p.note
	}
	if p.hint != "" && s.Bars {
		text += "\nhint: " + p.hint
	}
	return text
}

func allowed(s cli.Screen, verb string, d quota.Decision, p phrasing) string {
	text := verb + " " + p.inWords(d.Units)
	switch {
	case d.Unmetered && d.Entry != "":
		return text + " without the ledger, which cannot be reached: it is in this host's " +
			"journal,\nand will be in the ledger as entry " + d.Entry
	case d.Unmetered && p.dryRun:
		return text + " without the ledger, which cannot be reached"
	case d.Unmetered:
		return text + ", but not recorded: the ledger cannot be reached, and the configuration " +
			"allows this method"
	case d.Replayed:
		text = "already done with this key: " + text
	case d.Observed:
		text += " (observed only: " + d.Limit + " would have denied it"
		if !d.RetryAt.IsZero() { // zero if it can never fit, or the time is unknown
			text += " until " + s.Moment(d.RetryAt)
		}
		text += ")"
	}
	if len(d.Remaining) > 0 {
		text += "; " + left(d, p)
	}
	if d.Entry != "" {
		text += "\nentry " + d.Entry
	}
	return text
}

// left describes the units that remain for another charge of this kind. For a manual charge, they
// include the headroom.
func left(d quota.Decision, p phrasing) string {
	text := "left: " + p.inWords(d.Remaining)
	if p.headroom {
		text += ", including the headroom"
	}
	return text
}

// inWords returns "30 units of default, 1 unit of search_list, $12.40 of money".
func (p phrasing) inWords(units map[string]int64) string {
	var parts []string
	for _, bucket := range slices.Sorted(maps.Keys(units)) {
		n, unit := units[bucket], costs.Unit{}
		if p.unit != nil {
			unit = p.unit(bucket)
		}
		amount := unit.Text(n)
		if !unit.IsMoney() {
			noun := cmp.Or(unit.Name, "units")
			if n == 1 {
				noun = strings.TrimSuffix(noun, "s")
			}
			amount = fmt.Sprintf("%d %s", n, noun)
		}
		parts = append(parts, amount+" of "+bucket)
	}
	return strings.Join(parts, ", ")
}

// amount returns the units of one bucket in words.
func (p phrasing) amount(bucket string, units int64) string {
	return p.inWords(map[string]int64{bucket: units})
}

func (a *app) decided(verb string, d quota.Decision, err error, p phrasing) error {
	return a.answer(d, err, report.NewDecision(d, p.dryRun), func(s cli.Screen) {
		a.drawDecision(s, verb, d, p, "")
	})
}

// drawDecision prints a decision, followed by more: an allowed charge on standard output, a denial
// on standard error.
func (a *app) drawDecision(s cli.Screen, verb string, d quota.Decision, p phrasing, more string) {
	switch {
	case !d.Allowed:
		a.Draw(a.Stderr, func(s cli.Screen) { s.Say("%s%s\n", sentence(s, verb, d, p), more) })
	case !p.quiet:
		s.Say("%s%s\n", sentence(s, verb, d, p), more)
	}
}
