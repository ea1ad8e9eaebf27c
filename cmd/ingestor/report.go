package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

const maxCharts = 1000

// halfCharts is how many incomplete charts a report skips.
const halfCharts = 50

func freshnessCommand(a *app) *cobra.Command {
	last := 20
	c := a.Command("report freshness", func(c *cobra.Command, _ []string) error {
		return a.freshness(c.Context(), last)
	})
	cli.Flags(c.Flags(), "last", &last)
	cli.Limit(c.Flags(), 2, maxCharts, "last")
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
	rows := make([]freshnessJSON, len(lanes))
	for i, l := range lanes {
		rows[i] = freshnessJSON{Region: l.Region, Job: l.Job}
	}
	if !absentFile(cfg.Catalog) {
		err = a.browse(ctx, func(c *catalog.Catalog) error {
			for i := range rows {
				charts, err := lastCharts(ctx, c, rows[i].Region, last, price)
				if err != nil {
					return err
				}
				r := &rows[i]
				if r.Charts = len(charts); r.Charts == 0 {
					continue
				}
				at := charts[r.Charts-1].At
				r.Completed, r.Age = words.Time(at), new(words.Seconds(max(0, time.Since(at))))
				f := report.CompareCharts(charts)
				if r.Units = f.Units; f.Pairs > 0 {
					r.Gap = new(words.Seconds(f.Gap))
					r.Moved, r.New, r.PerUnit = &f.Moved, &f.New, &f.PerUnit
				}
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	out := map[string][]freshnessJSON{"regions": rows}
	return a.Print(out, func(s cli.Screen) { drawFreshness(s, rows) })
}

// lastCharts returns the last complete charts of a region, oldest first.
func lastCharts(ctx context.Context, c *catalog.Catalog, region string, last int,
	price []quota.Cost) ([]report.ReadChart, error) {
	list, err := c.Charts(ctx, region, 2*last+halfCharts)
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

func drawFreshness(s cli.Screen, rows []freshnessJSON) {
	span := func(seconds int64) string { return words.Span(time.Duration(seconds) * time.Second) }
	table := cli.View(rows, func(r freshnessJSON) cli.Row {
		age, gap, moved, fresh, perUnit := "none yet", "-", "-", "-", "-"
		if r.Age != nil {
			age = span(*r.Age)
		}
		if r.Gap != nil {
			gap, moved = span(*r.Gap), fmt.Sprintf("%.1f%%", 100**r.Moved)
			fresh, perUnit = fmt.Sprintf("%.1f%%", 100**r.New), fmt.Sprintf("%.2f", *r.PerUnit)
		}
		return cli.Row{"region", r.Region, "job", r.Job, ">charts", r.Charts, "age", age,
			">every", gap, ">places changed", moved, ">new videos", fresh, ">new per unit", perUnit}
	})
	s.Draw(table, cli.Drop("charts"), cli.Drop("places changed"), cli.Cut("job", 8),
		cli.Drop("job"))
}
