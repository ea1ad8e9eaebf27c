package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/freshness"
	"quotabudget/internal/quota"
)

func reportCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "report",
		Short: "Report on what was fetched",
	}
	c.AddCommand(freshnessCommand(a))
	return c
}

// mostCharts is how many charts of a region freshness compares at most.
const mostCharts = 1000

func freshnessCommand(a *app) *cobra.Command {
	var last int
	c := &cobra.Command{
		Use:   "freshness",
		Short: "Show how much each region's chart changes for a unit, and propose intervals",
		Long: `freshness compares the last complete charts of each configured region, each with the one before: how many places hold another
video, and how many videos are new. It proposes intervals with which a unit brings as many new videos in each region, while
together they spend about as much as now; at most four times longer or shorter than now. It costs nothing: only the catalogue
is read. ingestor plan says whether a proposal fits.

JSON: {regions:[{region, job, charts, completed_at, age_seconds, gap_seconds, places_changed, new_videos (shares, 0 to 1), new_videos_per_unit,
units, interval_seconds, proposed_seconds}], units_per_day, proposed_units_per_day}. What is not known yet, for want of two
charts or, of proposals, of charts from one interval at least, is null.`,
		Example: `  ingestor report freshness
  ingestor report freshness --last 100 -o json | jq '.regions[] | {region, proposed_seconds}'`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			if last < 2 || last > mostCharts {
				return cli.Usagef("--last %d: it is 2 to %d", last, mostCharts)
			}
			return a.freshness(c.Context(), last)
		},
	}
	c.Flags().IntVar(&last, "last", 20, "compare the last `N` complete charts of each region")
	return c
}

// freshnessJSON is the outward form of one region's change.
type freshnessJSON struct {
	Region    string   `json:"region"`
	Job       string   `json:"job"`
	Charts    int      `json:"charts"`
	Completed cli.Time `json:"completed_at"`
	Age       *int64   `json:"age_seconds"`
	Gap       *int64   `json:"gap_seconds"`
	Moved     *float64 `json:"places_changed"`
	New       *float64 `json:"new_videos"`
	PerUnit   *float64 `json:"new_videos_per_unit"`
	Units     int64    `json:"units"`
	Interval  int64    `json:"interval_seconds"`
	Proposed  *int64   `json:"proposed_seconds"`

	change freshness.Change
}

// freshnessReport is the outward form of all regions'.
type freshnessReport struct {
	Regions  []freshnessJSON `json:"regions"`
	PerDay   int64           `json:"units_per_day"`
	Proposed int64           `json:"proposed_units_per_day"`
}

func (a *app) freshness(ctx context.Context, last int) error {
	cfg, err := a.Load(a.getenv)
	if err != nil {
		return err
	}
	lanes, err := lanesOf(cfg)
	if err != nil {
		return err
	}
	price, err := cfg.Costs.Price(pageMethod)
	if err != nil {
		return err
	}
	known := make([]freshness.Lane, len(lanes))
	err = a.browse(ctx, func(c *catalog.Catalog) error {
		for i, l := range lanes {
			known[i] = freshness.Lane{Region: l.Region, Interval: l.Schedule.Interval()}
			if known[i].Charts, err = lastCharts(ctx, c, l.Region, last, price); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	out := freshnessReport{Regions: []freshnessJSON{}}
	for i, c := range freshness.Compare(known) {
		out.Regions = append(out.Regions, outwardChange(c, lanes[i].Job))
		each := int64(lanes[i].Pages) * price[0].Units
		if n := len(c.Charts); n > 0 {
			each = c.Charts[n-1].Units
		}
		out.PerDay += perDay(each, c.Interval)
		if c.Proposed == 0 {
			c.Proposed = c.Interval
		}
		out.Proposed += perDay(each, c.Proposed)
	}
	return a.Print(a.stdout, out, func() error { return a.drawFreshness(out) })
}

func perDay(units int64, interval time.Duration) int64 {
	return int64(float64(units) * float64(24*time.Hour) / float64(interval))
}

// lastCharts are the last complete charts of a region, the oldest first.
func lastCharts(ctx context.Context, c *catalog.Catalog, region string, last int, price []quota.Cost) ([]freshness.Chart, error) {
	list, err := c.Charts(ctx, catalog.ChartKey{Region: region}, 2*last+recentCharts)
	if err != nil {
		return nil, err
	}
	var charts []freshness.Chart
	for _, chart := range list {
		if chart.CompletedAt.IsZero() || len(charts) == last {
			continue
		}
		places, err := c.Places(ctx, chart.ID)
		if err != nil {
			return nil, err
		}
		charts = append(charts, freshness.Chart{At: chart.CompletedAt, Units: int64(chart.Pages) * price[0].Units, Places: places})
	}
	slices.Reverse(charts)
	return charts, nil
}

func outwardChange(c freshness.Change, job string) freshnessJSON {
	out := freshnessJSON{Region: c.Region, Job: job, Charts: len(c.Charts), Units: c.Units, Interval: cli.Seconds(c.Interval), change: c}
	if n := len(c.Charts); n > 0 {
		at := c.Charts[n-1].At
		age := cli.Seconds(max(0, time.Since(at)))
		out.Completed, out.Age = cli.Time(at), &age
	}
	if c.Pairs > 0 {
		gap := cli.Seconds(c.Gap)
		out.Gap, out.Moved, out.New, out.PerUnit = &gap, &c.Moved, &c.New, &c.PerUnit
	}
	if c.Proposed > 0 {
		proposed := cli.Seconds(c.Proposed)
		out.Proposed = &proposed
	}
	return out
}

func (a *app) drawFreshness(out freshnessReport) error {
	screen := cli.NewScreen(a.stdout, a.getenv)
	table := screen.Table("region", "job", ">charts", "age", ">every", ">places changed", ">new videos", ">new per unit", ">now", ">proposed")
	for _, r := range out.Regions {
		c := r.change
		row := []any{r.Region, r.Job, r.Charts, "none yet", "-", "-", "-", "-", cli.Span(c.Interval), "-"}
		if r.Age != nil {
			row[3] = cli.Span(time.Duration(*r.Age) * time.Second)
		}
		if c.Pairs > 0 {
			row[4], row[5], row[6] = cli.Span(c.Gap), fmt.Sprintf("%.1f%%", 100*c.Moved), fmt.Sprintf("%.1f%%", 100*c.New)
			row[7] = fmt.Sprintf("%.2f", c.PerUnit)
		}
		if c.Proposed > 0 {
			row[9] = cli.Span(c.Proposed)
		}
		table.AppendRow(row)
	}
	if err := screen.Draw(table); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "\n%s units a day now, %s with the intervals proposed\n", screen.Number(out.PerDay), screen.Number(out.Proposed))
	return err
}
