package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/forecast"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
	"quotabudget/internal/spell"
)

func (a *app) forecast() *cobra.Command {
	var bucket string
	var fail bool
	c := &cobra.Command{
		Use:   "forecast",
		Short: "Show when each bucket will run dry, and which runs lose pages",
		Long: `forecast says for every bucket whether it lasts to the reset or when it runs dry,
which runs then lose pages, and what avoids that. It goes by what is spent and set aside, the
configured schedule, and the unscheduled spending of the last two days (charges whose job is not in
the schedule). Units that leave a sliding window count again. It simulates 200 possible days: the
time shown is their median, and eight of ten days are between the two in brackets.

What it advises was simulated, too, and loses nothing: release a reservation that nobody has drawn
on, fetch fewer pages ("pages" in quota.yaml), or spend less besides the schedule.

Scheduled runs are left out by their shares while units are short, as by "ingestor run", and held
back by paces. Such a run is lost, but the bucket does not run dry because of it; the same goes for
a limit on less than ten minutes, which is checked for scheduled runs only. A run wants as many
pages as the region's last complete chart in the catalogue has, or the configured number.

It exits with 0 whatever the forecast is. With --fail it exits with 75 if a bucket is short:
exhausted, suspended, likely to run dry before its reset, or lasting but with scheduled runs lost.

docs/json.md describes the fields of -o json.`,
		Example: `  quotactl forecast
  quotactl forecast --bucket default --fail || echo short
  quotactl forecast -o json | jq -r '.credentials[].buckets[].text'`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			results, err := a.forecasts(c.Context(), bucket)
			if err != nil {
				return err
			}
			table := func() error { return a.forecastTable(results) }
			err = a.Print(newForecastList(results), table)
			short := func(f result) bool { return f.Short() }
			if err == nil && fail && slices.ContainsFunc(results, short) {
				return &cli.Coded{Code: cli.ExitExhausted}
			}
			return err
		},
	}
	c.Flags().StringVar(&bucket, "bucket", "", "only of this `BUCKET`")
	c.Flags().BoolVar(&fail, "fail", false,
		"exit with 75 when a bucket is short, or scheduled runs are lost")
	return c
}

type result struct {
	credential string
	forecast.Forecast
}

func (a *app) forecasts(ctx context.Context, bucket string) (results []result, err error) {
	err = a.withLedger(ctx, func(cfg *config.Config, l quota.Ledger) error {
		found, known := bucket == "", []string{}
		for _, c := range cfg.Credentials {
			g := &gate{c.Budget(l, cfg.Costs, a.Logger()), cfg}
			q, err := g.question(ctx, bucket)
			if err != nil {
				return err
			}
			known, found = append(known, g.Buckets()...), found || len(q.Limits) > 0
			forecasts, err := q.Ask(ctx, l)
			if err != nil {
				return err
			}
			for _, f := range forecasts {
				results = append(results, result{c.Name, f})
			}
		}
		if !found {
			return fmt.Errorf("%w: %q%s", quota.ErrNoBucket, bucket,
				spell.DidYouMean(bucket, known))
		}
		return nil
	})
	return results, err
}

func (g *gate) question(ctx context.Context, bucket string) (forecast.Question, error) {
	resets := make(map[string]quota.Window)
	q := forecast.Question{Credential: g.Credential, Paces: g.Paces, Resets: resets}
	for _, l := range g.Limits {
		if bucket == "" || l.Bucket == bucket {
			q.Limits = append(q.Limits, l)
			resets[l.Bucket] = g.reset(l.Bucket)
		}
	}
	if g.cfg.Ingest.Credential != g.Credential {
		return q, nil
	}
	var err error
	if q.Price, err = g.cfg.Costs.Price("youtube.videos.list"); err != nil {
		return q, nil // no run can charge for a page
	}
	q.Lanes, err = lanes(ctx, g.cfg)
	return q, err
}

// lanes are those of the configured jobs, with the pages that the catalogue says a run will want.
func lanes(ctx context.Context, cfg *config.Config) ([]share.Lane, error) {
	lanes, err := cfg.Lanes()
	if err != nil {
		return nil, err
	}
	c, err := catalog.OpenReading(ctx, cfg.Catalog)
	if errors.Is(err, fs.ErrNotExist) {
		return lanes, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range lanes {
		l := &lanes[i]
		if l.Pages, err = c.PagesWanted(ctx, l.Region, l.Pages); err != nil {
			break
		}
	}
	return lanes, errors.Join(err, c.Close())
}

func (a *app) forecastTable(results []result) error {
	s := a.Screen()
	t := s.Table("credential", "bucket", "verdict", ">remaining", ">scheduled", ">unscheduled/h",
		"dry at", ">chance", "reset")
	for _, f := range results {
		rate := fmt.Sprintf("%.0f", f.Rate.Likely)
		if f.Rate.High > f.Rate.Low {
			rate += fmt.Sprintf(" (%.0f-%.0f)", f.Rate.Low, f.Rate.High)
		}
		t.AppendColored(f.color(), []any{f.credential, f.Bucket, f.Verdict, f.Remaining,
			f.Scheduled.Units, rate, s.On(f.DryAt.Truncate(time.Second)),
			fmt.Sprintf("%.0f %%", 100*f.Chance), s.On(f.ResetAt)})
	}
	var steps []cli.Step
	other := func(f result) bool { return f.credential != results[0].credential }
	if !slices.ContainsFunc(results, other) {
		steps = append(steps, cli.Drop("credential"))
	}
	steps = append(steps, cli.All(cli.Shorten("reset"), cli.Shorten("dry at")),
		cli.Drop("scheduled"), cli.Drop("reset"), cli.Drop("unscheduled/h"),
		cli.Cut("bucket", 12), cli.Cut("credential", 10))
	err := s.Draw(t, steps...)
	for _, f := range results {
		err = cmp.Or(err, s.Say("%s\n", f.sentence(s)))
	}
	return err
}

func (f result) sentence(s cli.Screen) string { return f.credential + ": " + f.TextIn(s.Zone) }

func (f result) color() cli.Color {
	switch f.Verdict {
	case forecast.Exhausted, forecast.Closed:
		return cli.Red
	case forecast.Suspended, forecast.RunsDry:
		return cli.Yellow
	}
	return ""
}

// fine says that there is nothing to tell of the bucket.
func (f result) fine() bool { return f.Verdict == forecast.Lasts && !f.Short() }

// outlook writes what status says of the forecast: a sentence for each bucket that is short, and
// one for all others. Status has said already what is suspended.
func (a *app) outlook(ctx context.Context) error {
	s := a.Screen()
	results, err := a.forecasts(ctx, "")
	if err != nil { // the table is printed all the same
		return s.Say("no forecast: %v\n", err)
	}
	others := make(map[string]string)
	var order []string
	for _, f := range results {
		if !slices.Contains(order, f.credential) {
			order = append(order, f.credential)
			others[f.credential] = "every bucket lasts to the reset"
		}
		if f.fine() {
			continue
		}
		others[f.credential] = "every other bucket lasts to the reset"
		if f.Verdict == forecast.Suspended {
			continue
		}
		err = cmp.Or(err, s.Say("%s\n", f.sentence(s)))
	}
	for _, c := range order {
		fine := func(f result) bool { return f.credential == c && f.fine() }
		if slices.ContainsFunc(results, fine) {
			err = cmp.Or(err, s.Say("%s: %s\n", c, others[c]))
		}
	}
	return err
}
