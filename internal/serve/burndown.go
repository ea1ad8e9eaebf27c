package serve

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

// burnt is a row of the table that shows the same as the plot.
type burnt struct {
	At    time.Time
	Spent int64 // since the previous row
	Left  int64 // at the row's time
}

// burn computes the units left of a limit, past and future. A restoring window is drawn like a
// sliding one.
type burn struct {
	limit    quota.Limit
	from, to time.Time
	now      time.Time
	fixed    bool  // the window is a fixed one, between from and to
	left     int64 // now
	amount   func(units int64) string
	noun     string
	sums     []quota.Sum
	forecast plan.Forecast
}

// draw makes the account's plot and table.
func (a *account) draw() {
	b := burn{limit: a.Main.Limit, now: a.At, left: a.Main.Remaining, amount: a.In, noun: a.Noun(),
		sums: byGrain(a.sums), forecast: a.Forecast}
	window := b.limit.Window
	length := lengthOf(b.limit)
	switch end := a.Ends(window, a.At); {
	case window.IsCalendar():
		b.fixed = true
		b.from, b.to = window.Bounds(a.At)
	case !end.IsZero():
		b.fixed = true
		b.from, b.to = end.Add(-length), end
	default:
		b.from, b.to = a.At.Add(-length), a.At.Add(length)
		if reset := a.Forecast.ResetAt; reset.After(a.At) {
			b.to = reset
		}
	}
	a.Spenders = spenders(a.sums, quota.GrainOf(b.from))
	a.Rows = b.rows()
	p := &plot{ID: "burn-" + plotID(a.Name()), Name: a.Name() + ": units left",
		From: b.from, To: b.to, Height: 210}
	p.between(0, float64(max(b.cap(), 1)))
	if a.Suspended() {
		p.bar("suspended", a.At, a.SuspendedUntil)
		p.mark(minTime(a.SuspendedUntil, b.to),
			"suspended until "+endClock(a.At, a.SuspendedUntil))
	}
	p.line("even", b.even(a.Pace))
	past := b.past()
	p.area(past)
	if a.Forecast.ResetAt.After(a.At) {
		likely, low, high := b.ahead()
		p.band("band", high, low)
		p.line("likely", likely)
	}
	p.line("main", past)
	p.mark(a.At, "now")
	if dry := a.Forecast.DryAt; dry.After(a.At) && dry.Before(b.to) {
		p.mark(dry, "dry about "+shortClock(a.At, dry))
	}
	p.dot(past[len(past)-1])
	p.Text = b.text()
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

func (b *burn) cap() int64 { return b.limit.Cap(false) }

// spent returns the units charged between two moments. A grain counts in proportion to its overlap
// with them; the current grain ends now.
func (b *burn) spent(from, to time.Time) (units float64) {
	for _, s := range b.sums {
		start, end := s.At, minTime(s.At.Add(quota.Grain), b.now)
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
func (b *burn) leftAt(at time.Time) float64 {
	if b.limit.Window.Concurrent {
		return float64(b.left)
	}
	since := b.from
	if !b.fixed {
		since = at.Add(-lengthOf(b.limit))
	}
	return max(0, float64(b.cap())-b.spent(since, minTime(at, b.now)))
}

// steps returns up to some hundred moments between two.
func steps(from, to time.Time, least time.Duration) (all []time.Time) {
	step := max(least, to.Sub(from)/200)
	for at := from; at.Before(to); at = at.Add(step) {
		all = append(all, at)
	}
	return append(all, to)
}

func (b *burn) past() (line []point) {
	for _, at := range steps(b.from, b.now, quota.Grain) {
		line = append(line, point{at, b.leftAt(at)})
	}
	line[len(line)-1].value = float64(b.left) // held units are not left either
	return line
}

// ahead returns the units that will be left on the likely day, on the day at the highest tenth of
// spending, and on the day at the lowest.
func (b *burn) ahead() (likely, low, high []point) {
	f := b.forecast
	until := f.ResetAt.Sub(b.now)
	line := func(rate float64, dry time.Time) (line []point) {
		for _, at := range steps(b.now, b.to, 30*time.Minute) {
			hours := at.Sub(b.now).Hours()
			spent := rate*hours + float64(f.Scheduled.Units)*hours/until.Hours()
			value := float64(b.left) + b.leftAt(at) - b.leftAt(b.now) - spent
			if dry.After(b.now) && dry.Before(b.to) {
				value = float64(b.left) * float64(dry.Sub(at)) / float64(dry.Sub(b.now))
			}
			line = append(line, point{at, min(max(value, 0), float64(b.cap()))})
		}
		return line
	}
	return line(f.Rate.Likely, f.DryAt), line(f.Rate.High, f.Earliest), line(f.Rate.Low, f.Latest)
}

// even returns the line of even spending, or the line that the pace sets.
func (b *burn) even(pace *quota.Limit) (line []point) {
	if !b.fixed {
		return []point{{b.from, float64(b.cap())}, {b.to, float64(b.cap())}}
	}
	if pace == nil {
		return []point{{b.from, float64(b.cap())}, {b.to, 0}}
	}
	for _, at := range steps(b.from, b.to.Add(-time.Second), 30*time.Minute) {
		line = append(line, point{at, float64(b.cap() - pace.CapAt(at, false, false))})
	}
	return line
}

// rows returns a row for each hour until now, or about 24 rows for a longer window.
func (b *burn) rows() (rows []burnt) {
	part := max(time.Hour, (b.to.Sub(b.from) / 24).Truncate(time.Hour))
	before := b.from
	for at := b.from.Truncate(part).Add(part); before.Before(b.now); at = at.Add(part) {
		at = minTime(at, b.now)
		rows = append(rows, burnt{at.Truncate(time.Minute), int64(b.spent(before, at) + .5),
			int64(b.leftAt(at) + .5)})
		before = at
	}
	if len(rows) > 0 {
		rows[len(rows)-1].Left = b.left
	}
	return rows
}

func (b *burn) text() string {
	text := fmt.Sprintf("%s of %s%s for scheduled charges are left at %s; %s were spent since %s.",
		b.amount(b.left), b.amount(b.cap()), b.noun, shortClock(b.now, b.now),
		b.amount(int64(b.spent(b.from, b.now)+.5)), shortClock(b.now, b.from))
	f := b.forecast
	if !f.ResetAt.After(b.now) {
		return text
	}
	if f.DryAt.After(b.now) {
		return text + " They are likely to be gone at " + shortClock(b.now, f.DryAt) + "."
	}
	_, low, high := b.ahead()
	return text + fmt.Sprintf(" At %s, %s to %s will be left on eight of ten days.",
		shortClock(b.now, b.to), b.amount(int64(low[len(low)-1].value)),
		b.amount(int64(high[len(high)-1].value)))
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
