package share

import "math"

// Idle reports that a lane's tick is certain to be left out, because its next run is not due by
// then, unless a hold lapses before. The caller can skip Admit. A false result means nothing.
func (b *Book) Idle(lane int, at int64) bool { return at < b.lanes[lane].idle }

// wake clears the idle times of all lanes.
func (b *Book) wake() {
	b.slack = math.MaxInt64
	for i := range b.lanes {
		b.lanes[i].idle = math.MinInt64
	}
}

// worthResting is the number of ticks a lane must be idle for to make rest worthwhile.
const worthResting = 4

// rest finds until when a lane whose run is not due stays idle while all limits are short. Until
// then no window begins and no grain leaves one, so the intervals stay the same.
func (b *Book) rest(lane int, at int64) {
	t, until, slack := &b.lanes[lane].turn, int64(math.MaxInt64), int64(math.MaxInt64)
	if t.due < never/4 {
		until = at + (t.due-t.now-parts-1)/parts*t.every
	}
	until = min(until, t.until)
	for i := range b.limits {
		l := &b.limits[i]
		if l.enough || l.held > 0 {
			return
		}
		until, slack = min(until, l.window.until), min(slack, l.spare)
		if w := l.window; w.slides {
			until = min(until, floorGrain(at-w.length)+grain+w.length)
		}
	}
	if until-at < worthResting*t.every {
		return
	}
	for i := range b.limits {
		if b.mayBeEnough(&b.limits[i], at, until) {
			return
		}
	}
	b.slack, b.lanes[lane].idle = slack, until
}

// mayBeEnough reports whether a limit could leave enough for every tick before a moment.
func (b *Book) mayBeEnough(d *division, at, until int64) bool {
	w := d.window
	from, past := w.start, b.past+b.present
	if w.slides {
		from = floorGrain(at-w.length) + 2*grain
	}
	used := b.others.since(from, &d.resting[0]) + b.all.since(from, &d.resting[1])
	left := d.limit.Cap(false) - used
	for _, r := range b.rates {
		past += mulDiv((until-at)/r.every+1, r.units, 1)
	}
	return b.plenty(d, until, left) || !w.slides && w.wanted-past <= left
}
