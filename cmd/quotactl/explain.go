package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
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
	call := quota.Call{Bucket: quota.DefaultBucket, Units: 1}
	c := a.Command("explain", func(c *cobra.Command, _ []string) error {
		return a.with(c.Context(), func(g *gate) error {
			ctx := c.Context()
			d, spent, err := g.outcome(ctx, call)
			if err != nil && !d.Never {
				return err
			}
			p := g.phrasing(ctx, call.Manual, d)
			if d.Limit != quota.Suspended {
				p.hint = "" // the hint would name this command
			}
			out := explanation{report.NewDecision(d, true), spent.by}
			return a.answer(d, err, out, func(s cli.Screen) {
				if d.Allowed && !d.Observed {
					s.Say("it fits: %s; it would leave %s\n", p.inWords(d.Units), p.inWords(d.Remaining))
					return
				}
				s.Say("%s\n\n", sentence(s, "it would be allowed:", d, p))
				spent.draw(s)
			})
		})
	})
	cli.Flags(c.Flags(), "bucket", &call.Bucket, "units", &call.Units, "manual", &call.Manual,
		"label", newLabels(&call.Labels))
	cli.Limit(c.Flags(), 1, math.MaxInt64, "units")
	return c
}

// outcome returns the decision on a call, and the spenders of the units it lacks. If the call never
// fits, the decision is valid despite the error.
func (g *gate) outcome(ctx context.Context, call quota.Call) (d quota.Decision, spent spending,
	err error) {
	if err := g.charged(call.Bucket); err != nil {
		return d, spent, err
	}
	call.DryRun = true
	if d, err = g.Charge(ctx, call); err != nil && !d.Never {
		return d, spent, err
	}
	spent, failed := g.spending(ctx, call, d)
	if failed != nil {
		return quota.Decision{}, spent, failed
	}
	return d, spent, err
}

// spending is the units spent and held under a limit.
type spending struct {
	name  string      // of the window
	limit quota.Limit // Units is 0 for none
	unit  costs.Unit
	by    []spender
}

// spending returns the spending under the limit that denies a call.
func (g *gate) spending(ctx context.Context, call quota.Call, d quota.Decision) (spending, error) {
	bucket := call.Bucket
	if d.Limit == "" || d.Never {
		return spending{by: []spender{}}, nil
	}
	spent := spending{name: "the upstream's day, in this ledger",
		unit:  report.UnitOf(g.prices(), bucket),
		limit: quota.Limit{Window: g.prices().Reset(bucket)}}
	for _, l := range slices.Concat(g.LimitsOf(call), g.Paces) {
		if l.Name() == d.Limit && quota.WholeOf(l.Bucket) == quota.WholeOf(bucket) {
			spent.name = quota.ShownBucket(l.Bucket) + " " + l.Window.String()
			spent.limit, bucket = l, l.Bucket
		}
	}
	var reset time.Time
	var others int64
	if spent.limit.Bucket != "" {
		usage, err := g.Ledger.Usage(ctx, g.Credential, []quota.Limit{spent.limit})
		if err != nil {
			return spent, err
		}
		reset, others = usage.Buckets[0].ResetAt, usage.Buckets[0].Limits[0].Others
	}
	since := spent.limit.Since(d.At, reset)
	sums, err := quota.SumsAfter(ctx, g.Ledger, quota.SumQuery{
		Credential: g.Credential, Bucket: bucket, Since: since,
	})
	if err != nil {
		return spent, err
	}
	if others > 0 {
		sums = append(sums, quota.Sum{Units: others,
			Labels: quota.Labels{quota.LabelSource: "upstream"}})
	}
	held, err := g.Ledger.Reservations(ctx, g.Credential, bucket)
	spent.by = sumUp(sums, held)
	return spent, err
}

const mostSpenders = 10

// noun returns the unit after a figure; money has a sign instead.
func (t spending) noun() string {
	if t.unit.IsMoney() {
		return ""
	}
	return " " + cmp.Or(t.unit.Name, "units")
}

func (t spending) draw(s cli.Screen) {
	var sum int64
	for _, one := range t.by {
		sum += one.Units
	}
	amount := func(n int64) string { return s.Amount(t.unit, n) }
	text := t.name + ": " + amount(sum)
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
	s.Say("%s\n", text)
	if sum == 0 {
		return
	}
	table := cli.View(t.by[:min(len(t.by), mostSpenders)], func(one spender) cli.Row {
		return cli.Row{">units", amount(one.Units),
			">part", fmt.Sprintf("%.0f %%", 100*float64(one.Units)/float64(sum)), "labels", one.text()}
	})
	table.More("labels", len(t.by)-mostSpenders)
	s.Draw(table, cli.Cut("labels", 20))
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
		sum := sums[line]
		sum.Units += units
		maps.DeleteFunc(sum.Labels, func(name, value string) bool { return labels[name] != value })
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
	spenders := []spender{}
	for _, s := range sums {
		spenders = append(spenders, *s)
	}
	slices.SortFunc(spenders, func(a, b spender) int {
		return cmp.Or(cmp.Compare(b.Units, a.Units),
			cmp.Compare(a.Labels.Encode(), b.Labels.Encode()))
	})
	return spenders
}

func (s spender) text() string { return cmp.Or(labelText(s.Labels), "(none)") }
