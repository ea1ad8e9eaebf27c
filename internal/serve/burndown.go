package serve

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"quotabudget/internal/quota"
)

// burnt is a row of the table that shows the same as the plot.
type burnt struct {
	At    time.Time
	Spent int64 // since the previous row
	Left  int64 // at the row's time
}

// draw makes the plot, the table and the list of spenders. A restoring window is drawn like a
// sliding one.
func (a *account) draw(sums []quota.Sum) {
	window, length := a.Main.Limit.Window, lengthOf(a.Main.Limit)
	end := a.Ends(window, a.At)
	switch {
	case window.IsCalendar():
		a.from, a.to = window.Bounds(a.At)
	case a.Calendar():
		a.from, a.to = end.Add(-length), end
	default:
		a.from, a.to = a.At.Add(-length), a.At.Add(length)
		if reset := a.Forecast.ResetAt; reset.After(a.At) {
			a.to = reset
		}
	}
	a.sums, a.Spenders = byGrain(sums), spenders(sums, quota.GrainOf(a.from))
	a.Rows = a.rows()
	p := &plot{ID: "burn-" + plotID(a.Name()), Name: a.Name() + ": units left",
		From: a.from, To: a.to, Height: 210, Text: a.text()}
	p.between(0, float64(max(a.cap(), 1)))
	if a.Suspended() {
		p.bar("suspended", a.At, a.SuspendedUntil)
		p.mark(minTime(a.SuspendedUntil, a.to),
			"suspended until "+endClock(a.At, a.SuspendedUntil))
	}
	p.line("even", a.even())
	past := a.past()
	p.area(past)
	if a.Forecast.ResetAt.After(a.At) {
		likely, low, high := a.ahead()
		p.band("band", high, low)
		p.line("likely", likely)
	}
	p.line("main", past)
	p.mark(a.At, "now")
	if dry := a.Forecast.DryAt; dry.After(a.At) && dry.Before(a.to) {
		p.mark(dry, "dry about "+shortClock(a.At, dry))
	}
	p.dot(past[len(past)-1])
	a.Plot = p
}

// lengthOf returns how far back to draw a window that follows no calendar.
func lengthOf(l quota.Limit) time.Duration { return max(l.Reach(), quota.Grain) }

// byGrain adds up the sums of each grain, whatever their labels.
func byGrain(sums []quota.Sum) (all []quota.Sum) {
	for _, s := range sums {
		if n := len(all); n > 0 && all[n-1].At.Equal(s.At) {
			all[n-1].Units += s.Units
			continue
		}
		all = append(all, quota.Sum{At: s.At, Units: s.Units})
	}
	return all
}

// plotID replaces characters that an HTML id may not have.
func plotID(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' {
			return r
		}
		return '-'
	}, name)
}

func (a *account) cap() int64 { return a.Main.Limit.Cap(false) }

// spent returns the units charged between two moments. A grain counts in proportion to its overlap
// with them; the current grain ends now.
func (a *account) spent(from, to time.Time) (units float64) {
	for _, s := range a.sums {
		start, end := s.At, minTime(s.At.Add(quota.Grain), a.At)
		if !start.Before(to) || !end.After(from) {
			continue
		}
		length := end.Sub(start)
		if start.Before(from) {
			start = from
		}
		units += float64(s.Units) * float64(minTime(end, to).Sub(start)) / float64(length)
	}
	return units
}

// leftAt returns the units left at a moment, from spending alone.
func (a *account) leftAt(at time.Time) float64 {
	window, since := a.Main.Limit.Window, at.Add(-lengthOf(a.Main.Limit))
	switch {
	case window.Concurrent:
		return float64(a.Main.Remaining)
	case a.Calendar():
		since = a.from
	case window.Anchored && at.Before(a.ResetAt): // at is in the window that ended at ResetAt
		since = a.ResetAt.Add(-window.Length)
	case window.Anchored && since.Before(a.ResetAt):
		since = a.ResetAt
	}
	return max(0, float64(a.cap())-a.spent(since, minTime(at, a.At)))
}

// steps returns up to some hundred moments between two.
func steps(from, to time.Time, least time.Duration) (all []time.Time) {
	step := max(least, to.Sub(from)/200)
	for at := from; at.Before(to); at = at.Add(step) {
		all = append(all, at)
	}
	return append(all, to)
}

func (a *account) past() (line []point) {
	for _, at := range steps(a.from, a.At, quota.Grain) {
		line = append(line, point{at, a.leftAt(at)})
	}
	line[len(line)-1].value = float64(a.Main.Remaining) // held units are not left either
	return line
}

// ahead returns the units that will be left on the likely day, on the day at the highest tenth of
// spending, and on the day at the lowest.
func (a *account) ahead() (likely, low, high []point) {
	f := a.Forecast
	until := f.ResetAt.Sub(a.At)
	line := func(rate float64, dry time.Time) (line []point) {
		for _, at := range steps(a.At, a.to, 30*time.Minute) {
			hours := at.Sub(a.At).Hours()
			spent := rate*hours + float64(f.Scheduled.Units)*hours/until.Hours()
			value := float64(a.Main.Remaining) + a.leftAt(at) - a.leftAt(a.At) - spent
			if dry.After(a.At) && dry.Before(a.to) {
				value = float64(a.Main.Remaining) * float64(dry.Sub(at)) / float64(dry.Sub(a.At))
			}
			line = append(line, point{at, min(max(value, 0), float64(a.cap()))})
		}
		return line
	}
	return line(f.Rate.Likely, f.DryAt), line(f.Rate.High, f.Earliest), line(f.Rate.Low, f.Latest)
}

// even returns the line of even spending, or the line that the pace sets.
func (a *account) even() (line []point) {
	if !a.Calendar() {
		return []point{{a.from, float64(a.cap())}, {a.to, float64(a.cap())}}
	}
	if a.Pace == nil {
		return []point{{a.from, float64(a.cap())}, {a.to, 0}}
	}
	for _, at := range steps(a.from, a.to.Add(-time.Second), 30*time.Minute) {
		line = append(line, point{at, float64(a.cap() - a.Pace.CapAt(at, false, false))})
	}
	return line
}

// rows returns a row for each hour until now, or about 24 rows for a longer window.
func (a *account) rows() (rows []burnt) {
	part := max(time.Hour, (a.to.Sub(a.from) / 24).Truncate(time.Hour))
	before := a.from
	for at := a.from.Truncate(part).Add(part); before.Before(a.At); at = at.Add(part) {
		at = minTime(at, a.At)
		rows = append(rows, burnt{at.Truncate(time.Minute), int64(a.spent(before, at) + .5),
			int64(a.leftAt(at) + .5)})
		before = at
	}
	if len(rows) > 0 {
		rows[len(rows)-1].Left = a.Main.Remaining
	}
	return rows
}

func (a *account) text() string {
	text := fmt.Sprintf("%s of %s%s for scheduled charges are left at %s; %s were spent since %s.",
		a.In(a.Main.Remaining), a.In(a.cap()), a.Noun(), shortClock(a.At, a.At),
		a.In(int64(a.spent(a.from, a.At)+.5)), shortClock(a.At, a.from))
	f := a.Forecast
	if !f.ResetAt.After(a.At) {
		return text
	}
	if f.DryAt.After(a.At) {
		return text + " They are likely to be gone at " + shortClock(a.At, f.DryAt) + "."
	}
	_, low, high := a.ahead()
	return text + fmt.Sprintf(" At %s, %s to %s will be left on eight of ten days.",
		shortClock(a.At, a.to), a.In(int64(low[len(low)-1].value)),
		a.In(int64(high[len(high)-1].value)))
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// shortClock formats a moment to the minute, with the day unless it is today.
func shortClock(now, at time.Time) string { return at.UTC().Format(clockForm(now, at)) }

// endClock is shortClock rounded up, for the end of a period, as in the forecast's text.
func endClock(now, at time.Time) string {
	return shortClock(now, at.Add(time.Minute-time.Nanosecond).Truncate(time.Minute))
}
