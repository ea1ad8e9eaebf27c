package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
)

// explanation is what a charge would be answered, and who has taken what denies it.
type explanation struct {
	decision
	By []spender `json:"by"`
}

func (a *app) explain() *cobra.Command {
	var call quota.Call
	c := &cobra.Command{
		Use:   "explain",
		Short: "Whether a charge would fit now, when it will, and who has taken the units",
		Long: `explain says whether a charge would fit now, and if not, when it will and who has taken the units of the limit that
denies: the sums of that window by the labels of their entries, the largest first, and what reservations hold.
Runs of a job are added up. Where the upstream has closed the bucket it is what this ledger knows of the
bucket's day. Nothing is charged.

It exits as spend does: with 0 when the charge fits, with 75 when it does not fit now, and with 64 when it never will.

JSON: as spend --dry-run, and "by": [{"labels","units"}], empty when nothing denies. What a reservation holds has its ID
and its note as labels "reservation" and "note".`,
		Example: `  quotactl explain
  quotactl explain --units 30 --bucket search_list
  quotactl explain --units 30 -o json | jq -c '.by[0]'`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			if call.Units < 1 {
				return cli.Usagef("--units %d: at least 1", call.Units)
			}
			return a.with(c.Context(), func(g *gate) error {
				if err := g.bucket(call.Bucket); err != nil {
					return err
				}
				call.DryRun = true
				d, err := g.Charge(c.Context(), call)
				if err != nil && !d.Never {
					return err
				}
				by, of, err2 := g.spenders(c.Context(), call.Bucket, d)
				if err2 != nil {
					return err2
				}
				explain := g.asked(call.Manual, d)
				explain.explain = "" // this is it
				return a.explained(d, err, taken{of, by}, explain)
			})
		},
	}
	c.Flags().StringVar(&call.Bucket, "bucket", quota.DefaultBucket, "`BUCKET` to take the units from")
	c.Flags().Int64Var(&call.Units, "units", 1, "`N` units to take")
	c.Flags().BoolVar(&call.Manual, "manual", false, "a person asks: the headroom may be used")
	return c
}

// spenders are those who have taken the window of what denies, and the words for that window.
func (g *gate) spenders(ctx context.Context, bucket string, d quota.Decision) ([]spender, string, error) {
	if d.Limit == "" || d.Never {
		return []spender{}, "", nil
	}
	window, of := g.reset(bucket), "what this ledger knows of the bucket's day"
	for _, l := range slices.Concat(g.Limits, g.Paces) {
		if l.Bucket == bucket && l.Name() == d.Limit {
			window, of = l.Window, bucket+" "+l.Window.String()
		}
	}
	since := d.At.Add(-window.Length)
	if window.IsCalendar() {
		start, _ := window.Bounds(d.At)
		since = start.Add(-1000) // exclusive, in microseconds
	}
	entries, err := g.Ledger.Entries(ctx, quota.Query{Credential: g.Credential, Bucket: bucket, Since: since})
	if err != nil {
		return nil, "", err
	}
	held, err := g.Ledger.Reservations(ctx, g.Credential, bucket)
	return sumUp(entries, held), of, err
}

// mostSpenders is how many are listed for people.
const mostSpenders = 10

// taken is who has taken the units of a window.
type taken struct {
	window string // in words
	by     []spender
}

func (a *app) explained(d quota.Decision, err error, who taken, of asked) error {
	out := explanation{newDecision(d), who.by}
	out.DryRun = true
	return a.answer(d, err, out, func(s cli.Screen) error {
		text := denied(s, d, of)
		switch {
		case d.Observed:
			text = allowed(s, "it would pass:", d, of)
		case d.Allowed:
			return s.Say("it fits: %s; it would leave %s\n", inWords(d.Units), inWords(d.Remaining))
		}
		if err := s.Say("%s\n\n", text); err != nil {
			return err
		}
		return who.draw(s)
	})
}

func (t taken) draw(s cli.Screen) error {
	var sum int64
	for _, one := range t.by {
		sum += one.Units
	}
	if err := s.Say("%s: %s units are taken\n", t.window, s.Number(sum)); err != nil || sum == 0 {
		return err
	}
	table := s.Table(">units", ">part", "labels")
	for i, one := range t.by {
		if i == mostSpenders {
			table.AppendRow([]any{"", "", fmt.Sprintf("… %d more", len(t.by)-i)})
			break
		}
		part := fmt.Sprintf("%.0f %%", 100*float64(one.Units)/float64(sum))
		table.AppendRow([]any{s.Number(one.Units), part, one.text()})
	}
	return s.Draw(table, cli.Cut("labels", 20))
}
