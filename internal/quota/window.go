package quota

import (
	"fmt"
	"time"
)

// Window is the stretch of time over which a limit counts. A sliding window of length w at time n holds the entries
// stamped after n−w; a calendar window holds those stamped since its start. The zero value is no window.
type Window struct {
	Length   time.Duration  // of a sliding window; 0 for a calendar window
	Calendar string         // "day" or "hour"; "" for a sliding window
	Zone     *time.Location // of a calendar window
}

// MaxWindow is the longest sliding window a limit may have.
const MaxWindow = 366 * 24 * time.Hour

// Sliding returns the window of the last d.
func Sliding(d time.Duration) Window { return Window{Length: d} }

// ParseWindow reads "24h", "1m" (sliding) or "day", "hour" (calendar, in the IANA zone; UTC when it is empty).
func ParseWindow(text, zone string) (Window, error) {
	if text == "day" || text == "hour" {
		loc, err := time.LoadLocation(zone)
		if err != nil || zone == "Local" {
			return Window{}, fmt.Errorf("%q is not an IANA time zone such as America/Los_Angeles", zone)
		}
		return Window{Calendar: text, Zone: loc}, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return Window{}, fmt.Errorf("%q is not a window: write a duration such as 24h or 1m, or day or hour", text)
	case zone != "":
		return Window{}, fmt.Errorf("a sliding window of %s has no timezone: only day and hour do", text)
	case d < time.Millisecond || d > MaxWindow:
		return Window{}, fmt.Errorf("a window of %s is out of range: 1ms to %s", text, shortDuration(MaxWindow))
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

// Longest is an upper bound of the window's length; a local day can have 25 hours, and a little more in history.
func (w Window) Longest() time.Duration {
	switch w.Calendar {
	case "day":
		return 27 * time.Hour
	case "hour":
		return 2 * time.Hour
	}
	return w.Length
}

// Bounds returns the calendar window that holds now, by the zone's real rules: now is in [start, end). Windows follow one
// another without gap or overlap: where a clock change cuts an hour in two, each part is a window, and where it sets the
// clock back across midnight, the new day goes on.
func (w Window) Bounds(now time.Time) (start, end time.Time) {
	local := now.In(w.Zone)
	if w.Calendar == "hour" {
		return hourOf(local)
	}
	y, m, d := local.Date()
	start, end = firstInstant(y, m, d, w.Zone), firstInstant(y, m, d+1, w.Zone)
	if !now.Before(end) {
		start, end = end, firstInstant(y, m, d+2, w.Zone)
	}
	return start, end
}

func hourOf(local time.Time) (start, end time.Time) {
	_, offset := local.Zone()
	into := time.Duration((local.Unix()+int64(offset))%3600)*time.Second + time.Duration(local.Nanosecond())
	start, end = local.Add(-into), local.Add(time.Hour-into)
	from, until := local.ZoneBounds()
	if from.After(start) {
		start = from
	}
	if !until.IsZero() && until.Before(end) {
		end = until
	}
	return start, end
}

// firstInstant is the earliest second at which the local date in zone is y-m-d or later. time.Date alone is not enough:
// where a clock change skips midnight, it may answer with the hour before, and of a day that was skipped with another.
func firstInstant(y int, m time.Month, d int, zone *time.Location) time.Time {
	midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	at := midnight.Add(-30 * time.Hour).In(zone) // no zone is as far ahead of UTC
	for {
		_, offset := at.Zone()
		_, until := at.ZoneBounds()
		first := midnight.Add(-time.Duration(offset) * time.Second).In(zone)
		if first.Before(at) {
			first = at
		}
		if until.IsZero() || first.Before(until) {
			return first
		}
		at = until
	}
}

// shortDuration writes 24h0m0s as 24h.
func shortDuration(d time.Duration) string {
	s := d.String()
	if len(s) > 2 && s[len(s)-2:] == "0s" && s[len(s)-3] == 'm' {
		s = s[:len(s)-2]
	}
	if len(s) > 2 && s[len(s)-2:] == "0m" && s[len(s)-3] == 'h' {
		s = s[:len(s)-2]
	}
	return s
}
