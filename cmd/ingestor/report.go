package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
	"quotabudget/internal/words"
)

func reportCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "report",
		Short: "Report on what was fetched",
	}
	c.AddCommand(freshnessCommand(a))
	return c
}

const mostCharts = 1000

// halfCharts is how many charts that are not complete it looks past.
const halfCharts = 50

func freshnessCommand(a *app) *cobra.Command {
	var last int
	c := &cobra.Command{
		Use:   "freshness",
		Short: "Show how much each region's chart changes per unit, and propose intervals",
		Long: `freshness compares each of the last complete charts of a region with the one before:
how many places changed, and how many videos are new, among the places that both have. It proposes
intervals at which a unit brings the same number of new videos in each region and all regions
together spend about as much as now; at most four times longer or shorter than now. It costs
nothing: only the catalogue is read. docs/json.md describes -o json.`,
		Example: `  ingestor report freshness
  ingestor report freshness --last 100 -o json |
    jq '.regions[] | {region, proposed_seconds}'`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			if last < 2 || last > mostCharts {
				return cli.Usagef("--last %d: must be 2 to %d", last, mostCharts)
			}
			return a.freshness(c.Context(), last)
		},
	}
	c.Flags().IntVar(&last, "last", 20, "compare the last `N` complete charts of each region")
	return c
}

type freshnessJSON struct {
	Region    string     `json:"region"`
	Job       string     `json:"job"`
	Charts    int        `json:"charts"`
	Completed words.Time `json:"completed_at"`
	Age       *int64     `json:"age_seconds"`
	Gap       *int64     `json:"gap_seconds"`
	Moved     *float64   `json:"places_changed"`
	New       *float64   `json:"new_videos"`
	PerUnit   *float64   `json:"new_videos_per_unit"`
	Units     int64      `json:"units"`
	Interval  int64      `json:"interval_seconds"`
	Proposed  *int64     `json:"proposed_seconds"`

	change report.Freshness
}

type freshnessReport struct {
	Regions  []freshnessJSON `json:"regions"`
	PerDay   int64           `json:"units_per_day"`
	Proposed int64           `json:"proposed_units_per_day"`
}

func (a *app) freshness(ctx context.Context, last int) error {
	cfg, err := a.Load(ctx)
	if err != nil {
		return err
	}
	lanes, err := cfg.Lanes()
	if err != nil {
		return err
	}
	price, err := cfg.Costs.Price(report.PageMethod)
	if err != nil {
		return err
	}
	known := intervalsOf(lanes, time.Now())
	if !absentFile(cfg.Catalog) {
		err = a.browse(ctx, func(c *catalog.Catalog) (err error) {
			for i := range known {
				if known[i].Charts,
					err = lastCharts(ctx, c, known[i].Region, last, price); err != nil {
					break
				}
			}
			return err
		})
	}
	if err != nil {
		return err
	}
	out := freshnessReport{Regions: []freshnessJSON{}}
	var now, then float64 // units a day
	for i, c := range report.CompareCharts(known) {
		out.Regions = append(out.Regions, outwardChange(c, lanes[i].Job))
		each := lanes[i].Pages * price[0].Units
		if n := len(c.Charts); n > 0 {
			each = c.Charts[n-1].Units
		}
		now += perDay(each, c.Interval)
		if c.Proposed == 0 {
			c.Proposed = c.Interval
		}
		then += perDay(each, c.Proposed)
	}
	out.PerDay, out.Proposed = int64(math.Round(now)), int64(math.Round(then))
	return a.Print(out, func() error { return a.drawFreshness(out) })
}

func perDay(units int64, interval time.Duration) float64 {
	return float64(units) * float64(24*time.Hour) / float64(interval)
}

// intervalsOf returns the lanes with the average interval between their ticks.
func intervalsOf(lanes []share.Lane, now time.Time) []report.ReadLane {
	average := make(map[*schedule.Schedule]time.Duration)
	known := make([]report.ReadLane, len(lanes))
	for i, l := range lanes {
		if average[l.Schedule] == 0 {
			average[l.Schedule] = l.Schedule.AverageInterval(now)
		}
		known[i] = report.ReadLane{Region: l.Region, Interval: average[l.Schedule]}
	}
	return known
}

// lastCharts returns the last complete charts of a region, the oldest first.
func lastCharts(ctx context.Context, c *catalog.Catalog, region string, last int,
	price []quota.Cost) ([]report.ReadChart, error) {
	list, err := c.Charts(ctx, catalog.ChartKey{Region: region}, 2*last+halfCharts)
	if err != nil {
		return nil, err
	}
	var charts []report.ReadChart
	for _, chart := range list {
		if chart.CompletedAt.IsZero() || len(charts) == last {
			continue
		}
		places, err := c.Places(ctx, chart.ID)
		if err != nil {
			return nil, err
		}
		charts = append(charts, report.ReadChart{At: chart.CompletedAt,
			Units: int64(chart.Pages) * price[0].Units, Places: places})
	}
	slices.Reverse(charts)
	return charts, nil
}

func outwardChange(c report.Freshness, job string) freshnessJSON {
	out := freshnessJSON{Region: c.Region, Job: job, Charts: len(c.Charts), Units: c.Units,
		Interval: words.Seconds(c.Interval), change: c}
	if n := len(c.Charts); n > 0 {
		at := c.Charts[n-1].At
		out.Completed, out.Age = words.Time(at), new(words.Seconds(max(0, time.Since(at))))
	}
	if c.Pairs > 0 {
		out.Gap = new(words.Seconds(c.Gap))
		out.Moved, out.New, out.PerUnit = &c.Moved, &c.New, &c.PerUnit
	}
	if c.Proposed > 0 {
		out.Proposed = new(words.Seconds(c.Proposed))
	}
	return out
}

func (a *app) drawFreshness(out freshnessReport) error {
	screen := a.Screen()
	table := screen.Table("region", "job", ">charts", "age", ">every", ">places changed",
		">new videos", ">new per unit", ">now", ">proposed")
	for _, r := range out.Regions {
		c := r.change
		row := []any{r.Region, r.Job, r.Charts, "none yet", "-", "-", "-", "-",
			words.Span(c.Interval), "-"}
		if r.Age != nil {
			row[3] = words.Span(time.Duration(*r.Age) * time.Second)
		}
		if c.Pairs > 0 {
			row[4], row[5] = words.Span(c.Gap), fmt.Sprintf("%.1f%%", 100*c.Moved)
			row[6], row[7] = fmt.Sprintf("%.1f%%", 100*c.New), fmt.Sprintf("%.2f", c.PerUnit)
		}
		if c.Proposed > 0 {
			row[9] = words.Span(c.Proposed)
		}
		table.AppendRow(row)
	}
	err := screen.Draw(table, cli.Drop("charts"), cli.Drop("places changed"), cli.Cut("job", 8),
		cli.Drop("new per unit"), cli.Drop("job"))
	then := screen.Number(out.Proposed) + " with the intervals proposed"
	proposes := func(r freshnessJSON) bool { return r.Proposed != nil }
	if !slices.ContainsFunc(out.Regions, proposes) {
		then = "no proposal yet: it takes two complete charts of a region, an interval apart"
	}
	return cmp.Or(err, screen.Say("\n%s units a day now, %s\n", screen.Number(out.PerDay), then))
}
