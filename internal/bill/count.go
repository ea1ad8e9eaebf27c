package bill

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/untrusted"
)

// Count is the upstream's count of a bucket's units.
type Count struct {
	Units  int64
	Known  bool             // whether the upstream reports units of that time, or an explicit 0
	Models map[string]int64 // by the upstream's names; "" for units without a model
}

// period is a part of a report, with its rows.
type period struct {
	begin time.Time // zero if it has none of its own
	rows  []any
}

// periods returns the periods of a report without the rows of other projects.
func (c *Client) periods(m costs.Meter, pages []any) (all []period, err error) {
	for _, page := range pages {
		parts := []any{page}
		if m.Dated() {
			parts = untrusted.Items(page, m.Periods.At)
			if _, ok := untrusted.Find(page, m.Periods.At); !ok {
				return nil, unusable(m, "its response has no "+m.Periods.At)
			}
		}
		for _, part := range parts {
			p := period{rows: []any{part}}
			if m.Rows != "" {
				p.rows = untrusted.Items(part, m.Rows)
			}
			if m.Dated() {
				text, _ := untrusted.FindText(part, m.Periods.Begin)
				at, _, ok := costs.ParseMoment(text, m.Periods.As)
				if !ok {
					return nil, unusable(m, "a period has no "+m.Periods.Begin)
				}
				p.begin = at
			}
			p.rows = slices.DeleteFunc(p.rows, func(row any) bool {
				project, _ := untrusted.FindText(row, m.Project)
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
		for _, row := range p.rows {
			if metric, _ := untrusted.FindText(row, m.Metric); m.Metric != "" && metric != bucket.Metric {
				continue
			}
			n, found, err := number(m, f, row)
			if err != nil {
				return out, err
			}
			if name := currency(f, row); bucket.Unit.IsMoney() && !strings.EqualFold(name, "usd") {
				return out, unusable(m, "its amounts are not in dollars, but in "+untrusted.Plain(name))
			}
			if !found && m.Dated() {
				return out, unusable(m, "a row has no "+strings.Join(f.Paths, " or "))
			}
			model, _ := untrusted.FindText(row, m.Model)
			model, _, _ = strings.Cut(model, ", ")
			out.Known = out.Known || found
			sums[model] += n * f.Scale
		}
	}
	for model, sum := range sums {
		if float64(out.Units)+sum > maxCount {
			return out, unusable(m, "a figure is too large: "+strings.Join(f.Paths, ", "))
		}
		out.Models[model] = int64(math.Round(sum))
		out.Units += out.Models[model]
	}
	return out, nil
}

// currency returns the currency of a row's figure, or usd if the row names none.
func currency(f costs.Figure, row any) string {
	path := f.Paths[0]
	name, _ := untrusted.FindText(row, path[:strings.LastIndex(path, ".")+1]+"currency")
	return cmp.Or(name, "usd")
}

// maxCount is the largest accepted count of one day.
const maxCount = 1 << 52

// number adds up the numbers of a figure in a row. It returns false if there is none.
func number(m costs.Meter, f costs.Figure, row any) (sum float64, found bool, err error) {
	for _, path := range f.Paths {
		for _, value := range untrusted.Values(row, path) {
			text, ok := untrusted.FindText(map[string]any{"value": value}, "value")
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
		if now.Sub(begin) < time.Minute { // the upstream may still count the day before
			return nil, nil
		}
		return []Day{{Begin: begin, End: end, Until: now}}, nil
	}
	pages, err := c.ask(ctx, m, now, now)
	if err != nil {
		return nil, err
	}
	text, ok := untrusted.FindText(pages[0], f.End.Path)
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

// Day is a part of the log to compare: a day of the upstream, or as much of it as the upstream
// can have counted by now.
type Day struct {
	Begin, End time.Time // of a day of 23, 24 or 25 hours, or of the window in progress
	Until      time.Time // end of the comparison; End for a day that is over
	// Settled is set when the upstream is certain to have counted the whole day. Only then does a
	// smaller count mean that the ledger has too much.
	Settled bool
}

// settledAfter is how many lags after its end a day has certainly been counted.
const settledAfter = 4

// Days returns the last n days of the upstream, oldest first, except days of which the ledger may
// have dropped entries. It keeps them for the retention. Usage older than lag has usually been
// counted. If the upstream can report on a part of a day (ranged), today's comparison ends lag ago.
// Otherwise it ends now, and the upstream may have counted less.
func Days(reset quota.Window, now time.Time, n int, lag, retention time.Duration,
	ranged bool) []Day {
	var days []Day
	at, counted := now, now
	if ranged {
		counted = now.Add(-lag).Truncate(time.Minute)
	}
	for range n {
		begin, end := reset.Bounds(at)
		if begin.Before(now.Add(-retention)) {
			break
		}
		d := Day{Begin: begin, End: end, Until: end}
		if counted.Before(end) {
			d.Until = counted
		} else {
			d.Settled = !end.After(now.Add(-settledAfter * lag))
		}
		if d.Until.After(begin) {
			days = append([]Day{d}, days...)
		}
		at = begin.Add(-time.Microsecond)
	}
	return days
}

// Span returns the bounds of the comparison in the form of quota.Adjust and Ledger.Between: after
// the first moment, up to and including the second.
func (d Day) Span() (after, until time.Time) {
	return d.Begin.Add(-time.Microsecond), d.Until.Add(-time.Microsecond)
}

// Verdict is the result of a comparison.
type Verdict string

const (
	// Agrees: the counts are equal.
	Agrees Verdict = "agrees"
	// More: the upstream has counted more, so some program spends its quota without the ledger.
	More Verdict = "more"
	// Less: the upstream has counted less, and its count is final.
	Less Verdict = "less"
	// Waiting: the upstream has counted less so far.
	Waiting Verdict = "waiting"
	// Unknown: the upstream reports nothing about a day with units in the ledger. It may have
	// lost the data.
	Unknown Verdict = "unknown"
)

// Judge compares the ledger's count with the upstream's. known is false if the upstream reports
// nothing. The counts still agree if the upstream's is smaller by at most slack. The correction is
// the number of units to add to the ledger, negative to remove. It is 0 unless the verdict is More
// or Less.
func (d Day) Judge(ours, theirs int64, known bool, slack int64) (v Verdict, correction int64) {
	switch {
	case !known && ours > 0 && d.Settled:
		return Unknown, 0
	case theirs > ours:
		return More, theirs - ours
	case theirs < ours && known && ours-theirs <= slack:
		return Agrees, 0
	case theirs < ours && d.Settled:
		return Less, theirs - ours
	case theirs < ours:
		return Waiting, 0
	}
	return Agrees, 0
}
