package schedule

import (
	"math"
	"time"
)

// span is a time during which a zone keeps one offset from UTC, in Unix seconds. At u the wall
// clock shows u+offset.
type span struct {
	start, end int64 // end is exclusive
	offset     int64
	// the latest wall time shown before start; wall times up to it have passed
	seen int64
}

// first returns the first tick at or after u.
func (s *Schedule) first(u int64) int64 {
	if s.every > 0 {
		return -floorDiv(-u, s.every) * s.every
	}
	for {
		in := s.spanOf(u)
		if s.skipped(in, u) {
			return u
		}
		// after the clock went back it repeats wall times that have had their ticks
		wall := s.fields.next(max(u+in.offset, in.seen))
		if tick := wall - in.offset; tick < in.end {
			return tick
		}
		u = in.end
	}
}

// skipped reports whether the clock jumps at u over a moment of the spec.
func (s *Schedule) skipped(in *span, u int64) bool {
	return u == in.start && s.fields.next(in.seen) < in.start+in.offset
}

// spanOf returns the span that contains u.
func (s *Schedule) spanOf(u int64) *span {
	in := s.recent.Load()
	if in == nil || u < in.start || u >= in.end {
		in = spanAt(s.zone, u)
		s.recent.Store(in)
	}
	return in
}

// twoDays is more than any two offsets differ by, so earlier wall times do not matter.
const twoDays = 48 * 60 * 60

// spanAt returns the span that contains u. It begins two days before the preceding clock change:
// to include every wall time already shown, and because the starts in the zone tables are not
// exact near their end.
func spanAt(zone *time.Location, u int64) *span {
	in := boundsAt(zone, u)
	in.seen = math.MinInt64
	if in.start == math.MinInt64 {
		return &in
	}
	in = boundsAt(zone, in.start-twoDays)
	seen := int64(math.MinInt64)
	for in.end <= u {
		seen = max(seen, in.end+in.offset)
		start := in.end
		in = boundsAt(zone, start)
		in.start = start
	}
	in.seen = seen
	return &in
}

// boundsAt returns the span of u without seen.
func boundsAt(zone *time.Location, u int64) span {
	t := time.Unix(u, 0).In(zone)
	start, end := t.ZoneBounds()
	_, offset := t.Zone()
	s := span{start: math.MinInt64, end: math.MaxInt64, offset: int64(offset)}
	if !start.IsZero() {
		s.start = start.Unix()
	}
	if !end.IsZero() {
		s.end = end.Unix()
	}
	if s.end <= u {
		// Beyond the zone tables package time assumes 365 days a year, so 31 December of a leap
		// year lies after the span's end.
		const day = perDay * 60
		s.end = (floorDiv(u, day) + 1) * day
	}
	return s
}
