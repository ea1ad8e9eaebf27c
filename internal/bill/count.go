package bill

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/costs/formula"
	"quotabudget/internal/quota"
)

// Count is what the upstream has counted of a bucket.
type Count struct {
	Units  int64
	Known  bool             // the upstream reports about the time at all
	Models map[string]int64 // by the upstream's names; "" for what it names no model of
}

// period is a part of a report, with its rows.
type period struct {
	begin time.Time // zero if it has none of its own
	rows  []any
}

// periods returns the periods of a report, without the rows of other projects.
func (c *Client) periods(m costs.Meter, pages []any) (all []period, err error) {
	for _, page := range pages {
		parts := []any{page}
		if m.Dated() {
			parts = formula.Items(page, m.Periods.At)
			if _, ok := formula.Find(page, m.Periods.At); !ok {
				return nil, unusable(m, "its response has no "+m.Periods.At)
			}
		}
		for _, part := range parts {
			p := period{rows: []any{part}}
			if m.Rows != "" {
				p.rows = formula.Items(part, m.Rows)
			}
			if m.Dated() {
				text, _ := formula.FindText(part, m.Periods.Begin)
				at, _, ok := costs.ParseMoment(text, m.Periods.As)
				if !ok {
					return nil, unusable(m, "a period has no "+m.Periods.Begin)
				}
				p.begin = at
			}
			p.rows = slices.DeleteFunc(p.rows, func(row any) bool {
				project, _ := formula.FindText(row, m.Project)
				return m.Project != "" && c.Project != "" && project != c.Project
			})
			all = append(all, p)
		}
	}
	return all, nil
}

// Count returns what the upstream has counted of a bucket on a day.
func (c *Client) Count(ctx context.Context, m costs.Meter, f costs.Figure, day Day) (Count, error) {
	out := Count{Models: map[string]int64{}}
	until := day.End
	if m.Ranged() {
		until = day.Until
	}
	pages, err := c.ask(ctx, m, day.Begin, until)
	if err != nil {
		return out, err
	}
	periods, err := c.periods(m, pages)
	if err != nil {
		return out, err
	}
	bucket, _ := c.Table.Bucket(f.Bucket)
	sums := map[string]float64{}
	for _, p := range periods {
		if m.Dated() && (p.begin.Before(day.Begin) || !p.begin.Before(day.End)) {
			continue
		}
		out.Known = out.Known || m.Dated()
		for _, row := range p.rows {
			if metric, _ := formula.FindText(row, m.Metric); m.Metric != "" && metric != bucket.Metric {
				continue
			}
			n, found, err := number(m, f, row)
			if err != nil {
				return out, err
			}
			if !found && m.Dated() {
				return out, unusable(m, "a row has no "+strings.Join(f.Paths, " or "))
			}
			model, _ := formula.FindText(row, m.Model)
			model, _, _ = strings.Cut(model, ", ")
			out.Known = out.Known || found
			sums[model] += n * f.Scale
		}
	}
	for model, sum := range sums {
		if sum > maxCount {
			return out, unusable(m, "a figure is too large: "+strings.Join(f.Paths, ", "))
		}
		out.Models[model] = int64(math.Round(sum))
		out.Units += out.Models[model]
	}
	return out, nil
}

// maxCount bounds what an upstream can have counted of one model on one day.
const maxCount = 1 << 52

// number adds up the numbers of a figure in a row. It returns false if there is none.
func number(m costs.Meter, f costs.Figure, row any) (sum float64, found bool, err error) {
	for _, path := range f.Paths {
		for _, value := range formula.Values(row, path) {
			text, ok := formula.FindText(map[string]any{"value": value}, "value")
			if !ok && value == nil {
				continue
			}
			n, err := strconv.ParseFloat(text, 64)
			switch {
			case !ok || err != nil || math.IsNaN(n):
				return 0, false, unusable(m, path+" is not a number")
			case n < 0:
				return 0, false, unusable(m, path+" is negative: "+text)
			}
			sum, found = sum+n, true
		}
	}
	return sum, found, nil
}

// Days returns the days to compare, oldest first: the last n of the upstream, except those of which
// the ledger may have dropped entries, or the window in progress.
func (c *Client) Days(ctx context.Context, m costs.Meter, f costs.Figure, now time.Time, n int,
	retention time.Duration) ([]Day, error) {
	window := f.Window
	if window == (quota.Window{}) {
		window = c.Table.Reset(f.Bucket)
	}
	switch {
	case !m.Current():
		return Days(window, now, n, m.Lag, retention, m.Ranged()), nil
	case f.End.Path == "":
		begin, end := window.Bounds(now)
		return []Day{{Begin: begin, End: end, Until: now}}, nil
	}
	pages, err := c.ask(ctx, m, now, now)
	if err != nil {
		return nil, err
	}
	text, ok := formula.FindText(pages[0], f.End.Path)
	end, _, valid := costs.ParseMoment(text, f.End.As)
	switch {
	case !ok:
		return nil, nil // the upstream has no such bucket
	case !valid || end.After(now.Add(2*window.Length)):
		return nil, unusable(m, f.End.Path+" is not a time")
	case end.Before(now): // the next one begins with the next call
		return nil, nil
	}
	return []Day{{Begin: end.Add(-window.Length), End: end, Until: now}}, nil
}
