package quota

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Window is what a limit counts. The zero value is no window.
//
//   - A sliding window of length w at time n contains the entries stamped after n−w.
//   - A calendar window contains the entries stamped since its start.
//   - An anchored window slides, and never contains an entry stamped before the last end that the
//     upstream has reported.
//   - A restoring window regains units continuously until it is full: the used units are the level
//     of a leaky bucket.
//   - A concurrent window contains no entry: only held units count.
type Window struct {
	Length     time.Duration  // of a sliding or an anchored window
	Calendar   string         // "minute", "hour", "day", "week" or "month"; "" for the others
	Zone       *time.Location // of a calendar window
	Anchored   bool
	Restore    Rate // of a restoring window
	Concurrent bool
}

// Rate restores Units in each Per.
//
// The level of a restoring window is what was charged less what was restored, never below 0. To
// keep it a whole number, with the rate in lowest terms (Terms), each unit charged adds den, and
// each µs takes num off. So it is the maximum, over all entries, of den times the units charged
// from that entry on, less num times the µs since it.
type Rate struct {
	Units int64
	Per   time.Duration
}

// LevelAfter returns the level after some µs without a charge.
func (r Rate) LevelAfter(level, micros int64) int64 {
	num, _ := r.Terms()
	if micros > level/num {
		return 0
	}
	return level - num*micros
}

// NextReset returns when an anchored window ends, in Unix µs, after the upstream has reported an
// end at the time now. The known end stays unless a new window has begun: an end that keeps moving
// with the clock (of a sliding window) replaces it only once it is over. A past end, or one too far
// away for this window, changes nothing. Because clocks differ, an end up to a sixtieth of the
// length before the known one belongs to the next window.
func (w Window) NextReset(known, reported, now int64) int64 {
	length := w.Length.Microseconds()
	if !w.Anchored || reported <= now || reported > now+2*length {
		return known
	}
	reported = min(reported, now+length)
	if known > 0 && reported-length < known-length/60 {
		return known
	}
	return reported
}

// Restored returns the units restored in some µs, rounded up, at most MaxUnits.
func (r Rate) Restored(micros int64) int64 {
	num, den := r.Terms()
	if micros > (MaxTotal-den)/num {
		return MaxUnits
	}
	return min(MaxUnits, (max(0, micros)*num+den-1)/den)
}

// Terms returns the rate in lowest terms: num units in den µs.
func (r Rate) Terms() (num, den int64) {
	num, den = r.Units, r.Per.Microseconds()
	a, b := num, den
	for b != 0 {
		a, b = b, a%b
	}
	return num / a, den / a
}

var calendars = []string{"minute", "hour", "day", "week", "month"}

// MaxWindow is the longest sliding window a limit may have.
const MaxWindow = 366 * 24 * time.Hour

// Sliding returns the window of the last d.
func Sliding(d time.Duration) Window { return Window{Length: d} }

// IsCalendarWord reports whether a window of that name follows the calendar.
func IsCalendarWord(text string) bool { return slices.Contains(calendars, text) }

// ParseWindow reads "24h", "1m" (sliding), "minute", "hour", "day", "week" (from Monday), "month"
// (calendar, in the IANA zone; UTC when it is empty), "anchored 1h", "restoring 100/1s" or
// "concurrent".
func ParseWindow(text, zone string) (w Window, err error) {
	if IsCalendarWord(text) {
		loc, err := time.LoadLocation(zone)
		if err != nil || zone == "Local" {
			return w, fmt.Errorf("%q is not an IANA time zone such as America/Los_Angeles", zone)
		}
		return Window{Calendar: text, Zone: loc}, nil
	}
	if zone != "" {
		return w, fmt.Errorf("a window of %s has no timezone: only %s and %s do", text,
			strings.Join(calendars[:len(calendars)-1], ", "), calendars[len(calendars)-1])
	}
	kind, rest, more := strings.Cut(text, " ")
	switch {
	case text == "concurrent":
		return Window{Concurrent: true}, nil
	case kind == "restoring" && more:
		w.Restore, err = parseRate(rest)
		return w, err
	case kind == "anchored" && more:
		w.Anchored, text = true, rest
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return Window{}, fmt.Errorf("%q is not a window: write %s, or a duration such as 24h", text,
			strings.Join(calendars, ", "))
	case d < time.Millisecond || d > MaxWindow:
		longest := shortDuration(MaxWindow)
		return Window{}, fmt.Errorf("a window of %s is out of range: 1ms to %s", text, longest)
	}
	w.Length = d.Truncate(time.Microsecond)
	return w, nil
}

// parseRate reads "100/1s" or "100/s".
func parseRate(text string) (r Rate, err error) {
	units, per, ok := strings.Cut(text, "/")
	if strings.Trim(per, "hms") == "" { // "s" is "1s"
		per = "1" + per
	}
	r.Units, err = strconv.ParseInt(units, 10, 64)
	if err == nil {
		r.Per, err = time.ParseDuration(per)
	}
	if !ok || err != nil || r.Units < 1 || r.Units > MaxUnits ||
		r.Per < time.Millisecond || r.Per > MaxWindow || r.Per%time.Microsecond != 0 {
		return Rate{}, fmt.Errorf("%q is not a rate such as 100/1s: units, and in how long they "+
			"come back", text)
	}
	return r, nil
}

// IsCalendar reports whether the window follows the calendar.
func (w Window) IsCalendar() bool { return w.Calendar != "" }

// IsSliding reports whether the window covers the last Length, whatever the upstream reports.
func (w Window) IsSliding() bool { return w.Length > 0 && !w.Anchored }

// IsRestoring reports whether the window is a bucket that regains units.
func (w Window) IsRestoring() bool { return w.Restore.Units > 0 }

// String returns the window as in the configuration, followed by the zone of a calendar window.
func (w Window) String() string {
	if w.IsCalendar() {
		return w.Calendar + " " + w.Zone.String()
	}
	return w.Text()
}

// Text returns the window without its zone: "24h", "day", "anchored 1h".
func (w Window) Text() string {
	switch {
	case w.IsCalendar():
		return w.Calendar
	case w.Concurrent:
		return "concurrent"
	case w.IsRestoring():
		return fmt.Sprintf("restoring %d/%s", w.Restore.Units, shortDuration(w.Restore.Per))
	case w.Anchored:
		return "anchored " + shortDuration(w.Length)
	}
	return shortDuration(w.Length)
}

// ZoneName returns the IANA name of a calendar window's zone, "" for a sliding window.
func (w Window) ZoneName() string {
	if w.IsCalendar() {
		return w.Zone.String()
	}
	return ""
}

// after returns the time after which entries count at n. reset is the last end of an anchored
// window that the upstream reported, 0 for none.
func (w Window) after(n, reset int64) int64 {
	length := w.Length.Microseconds()
	switch {
	case w.IsCalendar():
		start, _ := w.Bounds(time.UnixMicro(n))
		return start.UnixMicro() - 1
	case w.Anchored && reset > n: // the window began a length before its end
		return max(n-length, reset-length-1)
	case w.Anchored && reset > 0:
		return max(n-length, reset-1)
	}
	return n - length
}

// departs returns the first moment at which an entry stamped at t no longer counts.
func (w Window) departs(t, reset int64) int64 {
	length := w.Length.Microseconds()
	switch {
	case w.IsCalendar():
		_, end := w.Bounds(time.UnixMicro(t))
		return end.UnixMicro()
	case w.Anchored && t < reset-length: // before the window began
		return t
	case w.Anchored && t < reset:
		return reset
	}
	return t + length
}

// Longest returns an upper bound of the window's length. A local day has up to 25 hours, and had
// slightly more in the past. For a restoring window it is 0: see Limit.Reach.
func (w Window) Longest() time.Duration {
	const day, shift = 24 * time.Hour, 3 * time.Hour
	switch w.Calendar {
	case "minute":
		return 2 * time.Minute
	case "hour":
		return 2 * time.Hour
	case "day":
		return day + shift
	case "week":
		return 7*day + shift
	case "month":
		return 31*day + shift
	}
	return w.Length
}

// Bounds returns the calendar window [start, end) that contains now, by the zone's actual rules.
// Windows follow one another without gap or overlap. If a clock change cuts an hour in two, each
// part is a window. If it sets the clock back across midnight, the day still changes only once.
func (w Window) Bounds(now time.Time) (start, end time.Time) {
	local := now.In(w.Zone)
	switch w.Calendar {
	case "minute":
		return roundOf(local, time.Minute)
	case "hour":
		return roundOf(local, time.Hour)
	}
	y, m, d := local.Date()
	nth := func(n int) time.Time { // the start of the nth window from now's
		switch w.Calendar {
		case "week": // from Monday
			return dayStart(y, m, d-(int(local.Weekday())+6)%7+7*n, w.Zone)
		case "month":
			return dayStart(y, m+time.Month(n), 1, w.Zone)
		}
		return dayStart(y, m, d+n, w.Zone)
	}
	start, end = nth(0), nth(1)
	switch {
	case now.Before(start):
		return nth(-1), start
	case !now.Before(end):
		return end, nth(2)
	}
	return start, end
}

// roundOf returns the bounds of the hour or minute of the local clock.
func roundOf(local time.Time, length time.Duration) (start, end time.Time) {
	offset := offsetOf(local)
	into := into(local, length)
	start, end = local.Add(-into), local.Add(length-into)
	if offsetOf(start) != offset {
		start = firstSecond(start, local, func(t time.Time) bool { return offsetOf(t) == offset })
	}
	if offsetOf(end.Add(-time.Second)) != offset {
		end = firstSecond(local, end, func(t time.Time) bool { return offsetOf(t) != offset })
	}
	return start, end
}

// into returns how long ago the hour or minute of the local clock began.
func into(local time.Time, length time.Duration) time.Duration {
	seconds := (local.Unix() + int64(offsetOf(local))) % int64(length/time.Second)
	return time.Duration(seconds)*time.Second + time.Duration(local.Nanosecond())
}

func offsetOf(t time.Time) int {
	_, offset := t.Zone()
	return offset
}

// dayStart returns the second at which the local date in zone becomes y-m-d or later. time.Date
// does not suffice: if a clock change skips midnight, it may return the hour before, and for a
// skipped day another day. Nor does ZoneBounds: on the last day of a leap year, its end can be
// before the time passed to it.
func dayStart(y int, m time.Month, d int, zone *time.Location) time.Time {
	midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	const far = 30 * time.Hour // no zone is farther from UTC
	lo, hi := midnight.Add(-far).In(zone), midnight.Add(far).In(zone)
	if offset := offsetOf(lo); offset == offsetOf(hi) { // no clock change, on most days
		return midnight.Add(-time.Duration(offset) * time.Second).In(zone)
	}
	want := civil(midnight)
	return firstSecond(lo, hi, func(t time.Time) bool { return civil(t) >= want })
}

// firstSecond returns the first full second after lo at which matches returns true. matches must be
// false at lo and true at hi, and must change only once between them.
func firstSecond(lo, hi time.Time, matches func(time.Time) bool) time.Time {
	second := func(i int) time.Time { return time.Unix(lo.Unix()+1+int64(i), 0).In(lo.Location()) }
	between := int(hi.Unix()-lo.Unix()) - 1
	return second(sort.Search(between, func(i int) bool { return matches(second(i)) }))
}

func civil(t time.Time) int { return (t.Year()*12+int(t.Month()))*32 + t.Day() }

// shortDuration writes 24h0m0s as 24h.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
