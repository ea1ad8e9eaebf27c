package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

func (a *app) forecast() *cobra.Command {
	var bucket string
	var fail bool
	c := a.Command("forecast", func(c *cobra.Command, _ []string) error {
		return a.withLedger(c.Context(), func(src report.Source) error {
			results, err := src.Forecasts(c.Context(), bucket)
			if err != nil {
				return err
			}
			err = a.Print(report.NewForecastList(results), func(s cli.Screen) {
				drawForecasts(s, results)
			})
			short := func(f report.Forecast) bool { return f.Short() }
			if err == nil && fail && slices.ContainsFunc(results, short) {
				return &cli.Coded{Code: cli.ExitExhausted}
			}
			return err
		})
	})
	cli.Flags(c.Flags(), "bucket", &bucket, "fail", &fail)
	return c
}

func drawForecasts(s cli.Screen, results []report.Forecast) {
	t := cli.View(results, func(f report.Forecast) cli.Row {
		amount := func(n int64) string { return s.Amount(f.Unit, n) }
		rate := func(n float64) string {
			if f.Unit.IsMoney() {
				return f.Unit.Text(int64(n))
			}
			return fmt.Sprintf("%.0f", n)
		}
		hourly := rate(f.Rate.Likely)
		if f.Rate.High > f.Rate.Low {
			hourly += " (" + rate(f.Rate.Low) + "-" + rate(f.Rate.High) + ")"
		}
		var color cli.Color
		switch f.Verdict {
		case plan.Exhausted, plan.Closed:
			color = cli.Red
		case plan.Suspended, plan.RunsDry:
			color = cli.Yellow
		}
		return cli.Row{color,
			"credential", f.Credential,
			"bucket", quota.ShownBucket(f.Bucket),
			"verdict", f.Verdict,
			">remaining", amount(f.Remaining),
			">scheduled", amount(f.Scheduled.Units),
			">unscheduled/h", hourly,
			"dry at", s.On(f.DryAt.Truncate(time.Second)),
			"earliest", s.On(f.Earliest.Truncate(time.Second)),
			"latest", s.On(f.Latest.Truncate(time.Second)),
			"end", s.On(f.ResetAt)}
	})
	var steps []cli.Step
	other := func(f report.Forecast) bool { return f.Credential != results[0].Credential }
	if !slices.ContainsFunc(results, other) {
		steps = append(steps, cli.Drop("credential"))
	}
	steps = append(steps, cli.All(cli.Shorten("end"), cli.Shorten("dry at"),
		cli.Shorten("earliest"), cli.Shorten("latest")),
		cli.Drop("scheduled"), cli.Drop("latest"), cli.Drop("end"), cli.Drop("unscheduled/h"),
		cli.Cut("bucket", 12), cli.Cut("credential", 10))
	s.Draw(t, steps...)
	for _, f := range results {
		s.Say("%s: %s\n", f.Credential, f.TextIn(s.Zone))
	}
}

// sayOutlook prints the forecast for status: a sentence for each short bucket, and one for all
// others. The table of status already shows suspensions.
func sayOutlook(s cli.Screen, results []report.Forecast, err error) {
	if err != nil { // the table is printed nevertheless
		s.Say("no forecast: %v\n", err)
		return
	}
	var order []string
	lasts, short := make(map[string]bool), make(map[string]bool) // by credential
	for _, f := range results {
		if !slices.Contains(order, f.Credential) {
			order = append(order, f.Credential)
		}
		switch {
		case (f.Verdict == plan.Lasts || f.Verdict == plan.Unused) && !f.Short():
			lasts[f.Credential] = lasts[f.Credential] || f.Verdict == plan.Lasts
			continue
		case f.Verdict != plan.Suspended:
			s.Say("%s: %s\n", f.Credential, f.TextIn(s.Zone))
		}
		short[f.Credential] = true
	}
	for _, c := range order {
		var text string
		switch {
		case lasts[c] && short[c]:
			text = "every other bucket lasts to the reset"
		case lasts[c]:
			text = "every bucket lasts to the reset"
		case short[c]: // only unused units are left
			continue
		default:
			text = "no forecast yet: nothing is spent or scheduled"
		}
		s.Say("%s: %s\n", c, text)
	}
}
