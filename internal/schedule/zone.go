package schedule

import (
	"math"
	"time"
)

// span is a time in which a zone keeps one offset from UTC, all in Unix seconds. The
// wall clock shows u+offset.
type span struct {
	start, end int64 // the end is outside
	offset     int64
	// what the wall clock had come to before start: the moments up to there are past
	seen int64
}

// first returns the first tick that is not before u.
func (s *Schedule) first(u int64) int64 {
	if s.every > 0 {
		return -floorDiv(-u, s.every) * s.every
	}
	for {
		in := s.spanOf(u)
		if s.skipped(in, u) {
			return u
		}
		// the clock went back: what it showed before is not shown again
		wall := s.fields.next(max(u+in.offset, in.seen))
		if tick := wall - in.offset; tick < in.end {
			return tick
		}
		u = in.end
	}
}

// skipped reports whether the clock goes forward at u over a moment of the spec.
func (s *Schedule) skipped(in *span, u int64) bool {
	return u == in.start && s.fields.next(in.seen) < in.start+in.offset
}

// spanOf returns the span that u is in.
func (s *Schedule) spanOf(u int64) *span {
	in := s.recent.Load()
	if in == nil || u < in.start || u >= in.end {
		in = spanAt(s.zone, u)
		s.recent.Store(in)
	}
	return in
}

// twoDays is longer than any two offsets are apart: what the wall clock showed earlier is out of
// its reach.
const twoDays = 48 * 60 * 60

// spanAt returns the span that u is in. It begins two days before the change that led to it, so as
// to see all that the wall clock has shown, and because the beginnings that the zone tables give
// are not exact where the tables end.
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

// boundsAt returns what the zone says of u, without seen.
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
		// Beyond its tables package time says that a year has 365 days: 31 December of a leap year
		// lies after its end.
		const day = perDay * 60
		s.end = (floorDiv(u, day) + 1) * day
	}
	return s
}
