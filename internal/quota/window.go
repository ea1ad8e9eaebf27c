package quota

import (
	"fmt"
	"strings"
	"time"
)

// Window is the stretch of time over which a limit counts. A sliding window of length w at time n
// holds the entries stamped after n−w; a calendar window holds those stamped since its start. The
// zero value is no window.
type Window struct {
	Length   time.Duration  // of a sliding window; 0 for a calendar window
	Calendar string         // "day" or "hour"; "" for a sliding window
	Zone     *time.Location // of a calendar window
}

// MaxWindow is the longest sliding window a limit may have.
const MaxWindow = 366 * 24 * time.Hour

// Sliding returns the window of the last d.
func Sliding(d time.Duration) Window { return Window{Length: d} }

// ParseWindow reads "24h", "1m" (sliding) or "day", "hour" (calendar, in the IANA zone; UTC when it
// is empty).
func ParseWindow(text, zone string) (w Window, err error) {
	if text == "day" || text == "hour" {
		loc, err := time.LoadLocation(zone)
		if err != nil || zone == "Local" {
			return w, fmt.Errorf("%q is not an IANA time zone such as America/Los_Angeles", zone)
		}
		return Window{Calendar: text, Zone: loc}, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return w, fmt.Errorf("%q is not a window: write day, hour or a duration such as 24h", text)
	case zone != "":
		return w, fmt.Errorf("a sliding window of %s has no timezone: only day and hour do", text)
	case d < time.Millisecond || d > MaxWindow:
		most := shortDuration(MaxWindow)
		return w, fmt.Errorf("a window of %s is out of range: 1ms to %s", text, most)
	}
	return Sliding(d.Truncate(time.Microsecond)), nil
}

// IsCalendar reports whether the window follows the calendar.
func (w Window) IsCalendar() bool { return w.Calendar != "" }

// String is the window as the configuration writes it, followed by the zone of a calendar window.
func (w Window) String() string {
	if w.IsCalendar() {
		return w.Calendar + " " + w.Zone.String()
	}
	return shortDuration(w.Length)
}

// Text is the window without its zone: "24h", "day".
func (w Window) Text() string {
	if w.IsCalendar() {
		return w.Calendar
	}
	return shortDuration(w.Length)
}

// ZoneName is the IANA name of a calendar window's zone, "" for a sliding window.
func (w Window) ZoneName() string {
	if w.IsCalendar() {
		return w.Zone.String()
	}
	return ""
}

// Longest is an upper bound of the window's length; a local day can have 25 hours, and a little
// more in history.
func (w Window) Longest() time.Duration {
	switch w.Calendar {
	case "day":
		return 27 * time.Hour
	case "hour":
		return 2 * time.Hour
	}
	return w.Length
}

// Bounds returns the calendar window that holds now, by the zone's real rules: now is in [start,
// end). Windows follow one another without gap or overlap: where a clock change cuts an hour in
// two, each part is a window, and where it sets the clock back across midnight, the day changes
// once all the same.
func (w Window) Bounds(now time.Time) (start, end time.Time) {
	local := now.In(w.Zone)
	if w.Calendar == "hour" {
		return hourOf(local)
	}
	y, m, d := local.Date()
	start, end = dayStart(y, m, d, w.Zone), dayStart(y, m, d+1, w.Zone)
	switch {
	case now.Before(start):
		return dayStart(y, m, d-1, w.Zone), start
	case !now.Before(end):
		return end, dayStart(y, m, d+2, w.Zone)
	}
	return start, end
}

func hourOf(local time.Time) (start, end time.Time) {
	offset := offsetOf(local)
	into := intoHour(local)
	start, end = local.Add(-into), local.Add(time.Hour-into)
	if offsetOf(start) != offset {
		start = firstSecond(start, local, func(t time.Time) bool { return offsetOf(t) == offset })
	}
	if offsetOf(end.Add(-time.Second)) != offset {
		end = firstSecond(local, end, func(t time.Time) bool { return offsetOf(t) != offset })
	}
	return start, end
}

// intoHour is how long the hour of the local clock has lasted.
func intoHour(local time.Time) time.Duration {
	seconds := (local.Unix() + int64(offsetOf(local))) % 3600
	return time.Duration(seconds)*time.Second + time.Duration(local.Nanosecond())
}

func offsetOf(t time.Time) int {
	_, offset := t.Zone()
	return offset
}

// dayStart is the second at which the local date in zone becomes y-m-d or later. time.Date is not
// enough: where a clock change skips midnight it may answer with the hour before, and of a day that
// was skipped with another. Nor is ZoneBounds: on the last day of a leap year it can end before the
// moment it was asked about.
func dayStart(y int, m time.Month, d int, zone *time.Location) time.Time {
	midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	want := civil(midnight)
	const far = 30 * time.Hour // no zone is farther from UTC
	return firstSecond(midnight.Add(-far).In(zone), midnight.Add(far).In(zone),
		func(t time.Time) bool { return civil(t) >= want })
}

// firstSecond is the full second after lo, and not after hi, from which is holds. It does not hold
// at lo and does at hi.
func firstSecond(lo, hi time.Time, is func(time.Time) bool) time.Time {
	from, to := lo.Unix(), hi.Unix()
	for to-from > 1 {
		mid := from + (to-from)/2
		if is(time.Unix(mid, 0).In(lo.Location())) {
			to = mid
		} else {
			from = mid
		}
	}
	return time.Unix(to, 0).In(lo.Location())
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
