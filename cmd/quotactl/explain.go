package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// explanation is the decision on a charge, with the spenders of the units it lacks.
type explanation struct {
	report.Decision
	By []spender `json:"by"`
}

func (a *app) explain() *cobra.Command {
	var call quota.Call
	c := &cobra.Command{
		Use:   "explain",
		Short: "Show whether a charge fits now, when it will, and who has taken the units",
		Long: `explain shows whether a charge would fit now, else when it will, and what has taken the
units of the limit that denies it: what was spent in its window by job, the largest sum first, and
what reservations hold. If the bucket is suspended, the window is the upstream's day. Nothing is
charged.

It exits like spend: with 0 if the charge fits, 75 if it does not fit now, 64 if it never will.`,
		Example: `  quotactl explain
  quotactl explain --units 30 --bucket search_list
  quotactl explain --units 30 -o json | jq -c '.by[0]'`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			if call.Units < 1 {
				return cli.Usagef("--units %d: must be at least 1", call.Units)
			}
			return a.with(c.Context(), func(g *gate) error {
				return a.explainCall(c.Context(), g, call)
			})
		},
	}
	c.Flags().StringVar(&call.Bucket, "bucket", quota.DefaultBucket,
		"`BUCKET` to take the units from")
	c.Flags().Int64Var(&call.Units, "units", 1, "`N` units to take")
	bindManual(c.Flags(), &call.Manual)
	bindLabels(c.Flags(), &call.Labels)
	return c
}

// explainCall prints the decision on a call.
func (a *app) explainCall(ctx context.Context, g *gate, call quota.Call) error {
	d, who, err := g.outcome(ctx, call)
	if err != nil && !d.Never {
		return err
	}
	of := g.phrasing(ctx, call.Manual, d)
	if d.Limit != quota.Suspended {
		of.hint = "" // the hint would name this command
	}
	return a.explained(d, err, who, of)
}

// outcome returns the decision on a call, and the spenders of the units it lacks. If the call never
// fits, the decision is valid despite the error.
func (g *gate) outcome(ctx context.Context, call quota.Call) (d quota.Decision, who taken,
	err error) {
	if err := g.charged(call.Bucket); err != nil {
		return d, who, err
	}
	call.DryRun = true
	if d, err = g.Charge(ctx, call); err != nil && !d.Never {
		return d, who, err
	}
	who, failed := g.taken(ctx, call, d)
	if failed != nil {
		return quota.Decision{}, who, failed
	}
	return d, who, err
}

// taken is the spending under a limit.
type taken struct {
	of    string      // the window, in words
	limit quota.Limit // Units is 0 for none
	unit  costs.Unit
	by    []spender
}

func (g *gate) taken(ctx context.Context, call quota.Call, d quota.Decision) (taken, error) {
	bucket := call.Bucket
	if d.Limit == "" || d.Never {
		return taken{by: []spender{}}, nil
	}
	who := taken{of: "the upstream's day, in this ledger", unit: report.UnitOf(g.prices(), bucket),
		limit: quota.Limit{Window: g.prices().Reset(bucket)}}
	for _, l := range slices.Concat(g.LimitsOf(call), g.Paces) {
		if l.Name() == d.Limit && quota.WholeOf(l.Bucket) == quota.WholeOf(bucket) {
			who.of, who.limit, bucket = quota.ShownBucket(l.Bucket)+" "+l.Window.String(), l, l.Bucket
		}
	}
	var reset time.Time
	var others int64
	if who.limit.Bucket != "" {
		usage, err := g.Ledger.Usage(ctx, g.Credential, []quota.Limit{who.limit})
		if err != nil {
			return who, err
		}
		reset, others = usage.Buckets[0].ResetAt, usage.Buckets[0].Limits[0].Others
	}
	since := who.limit.Since(d.At, reset)
	sums, err := quota.SumsAfter(ctx, g.Ledger, quota.SumQuery{
		Credential: g.Credential, Bucket: bucket, Since: since,
	})
	if err != nil {
		return who, err
	}
	if others > 0 {
		sums = append(sums, quota.Sum{Units: others,
			Labels: quota.Labels{quota.LabelSource: "upstream"}})
	}
	held, err := g.Ledger.Reservations(ctx, g.Credential, bucket)
	who.by = sumUp(sums, held)
	return who, err
}

const mostSpenders = 10

func (a *app) explained(d quota.Decision, err error, who taken, of phrasing) error {
	out := explanation{report.NewDecision(d, true), who.by}
	return a.answer(d, err, out, func(s cli.Screen) error {
		if d.Allowed && !d.Observed {
			return s.Say("it fits: %s; it would leave %s\n", of.inWords(d.Units),
				of.inWords(d.Remaining))
		}
		return cmp.Or(s.Say("%s\n\n", sentence(s, "it would pass:", d, of)), who.draw(s))
	})
}

// noun returns the unit after a figure; money has a sign instead.
func (t taken) noun() string {
	if t.unit.IsMoney() {
		return ""
	}
	return " " + cmp.Or(t.unit.Name, "units")
}

func (t taken) draw(s cli.Screen) error {
	var sum int64
	for _, one := range t.by {
		sum += one.Units
	}
	amount := func(n int64) string { return s.Amount(t.unit, n) }
	text := t.of + ": " + amount(sum)
	switch limit := t.limit; {
	case limit.Window.IsRestoring():
		text += " taken or held, of which some were restored"
	case limit.Units > 0:
		text += " of " + amount(limit.Units) + t.noun() + " are taken"
	default:
		text += t.noun() + " are taken"
	}
	if t.limit.Headroom > 0 {
		text += ", " + amount(t.limit.Headroom) + " are kept for people"
	}
	if err := s.Say("%s\n", text); err != nil || sum == 0 {
		return err
	}
	table := s.Table(">units", ">part", "labels")
	for i, one := range t.by {
		if i == mostSpenders {
			table.AppendRow([]any{"", "", fmt.Sprintf("… %d more", len(t.by)-i)})
			break
		}
		part := fmt.Sprintf("%.0f %%", 100*float64(one.Units)/float64(sum))
		table.AppendRow([]any{amount(one.Units), part, one.text()})
	}
	return s.Draw(table, cli.Cut("labels", 20))
}

// spender is a job that spent units, or entries with the same labels but no job.
type spender struct {
	Labels quota.Labels `json:"labels"` // shared by all of its entries
	Units  int64        `json:"units"`
}

// Labels of the units that a reservation holds.
const (
	labelReservation = "reservation"
	labelNote        = "note"
)

// sumUp sums the units spent by job, and the units reservations hold; the largest sum first.
func sumUp(spent []quota.Sum, held []quota.Reservation) []spender {
	sums := make(map[string]*spender)
	add := func(labels quota.Labels, units int64) {
		line := labels.Encode()
		if job := labels[quota.LabelJob]; job != "" {
			line = quota.Labels{quota.LabelJob: job}.Encode()
		}
		if sums[line] == nil {
			sums[line] = &spender{Labels: labels}
		}
		of := sums[line]
		of.Units += units
		maps.DeleteFunc(of.Labels, func(name, value string) bool { return labels[name] != value })
	}
	for _, s := range spent {
		labels := s.Labels.With(nil)
		delete(labels, quota.LabelDenied)
		add(labels, s.Units)
	}
	for _, r := range held {
		labels := quota.Labels{labelReservation: r.ID}
		if r.Note != "" {
			labels[labelNote] = r.Note
		}
		if r.Left > 0 {
			add(labels, r.Left)
		}
	}
	by := []spender{}
	for _, s := range sums {
		by = append(by, *s)
	}
	slices.SortFunc(by, func(a, b spender) int {
		return cmp.Or(cmp.Compare(b.Units, a.Units),
			cmp.Compare(a.Labels.Encode(), b.Labels.Encode()))
	})
	return by
}

func (s spender) text() string { return cmp.Or(labelText(s.Labels), "(none)") }
