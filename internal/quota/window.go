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

// Bounds returns the calendar window that holds now, by the zone's real rules: now is in [start, end).
func (w Window) Bounds(now time.Time) (start, end time.Time) {
	local := now.In(w.Zone)
	if w.Calendar == "hour" {
		_, offset := local.Zone()
		into := time.Duration((now.Unix()+int64(offset))%3600)*time.Second + time.Duration(now.Nanosecond())
		return now.Add(-into), now.Add(time.Hour - into)
	}
	y, m, d := local.Date()
	return firstInstant(y, m, d, w.Zone), firstInstant(y, m, d+1, w.Zone)
}

// firstInstant is the earliest second at which the local date in zone is y-m-d or later. time.Date alone is not enough:
// where a clock change skips midnight, it may answer with the hour before.
func firstInstant(y int, m time.Month, d int, zone *time.Location) time.Time {
	noon := time.Date(y, m, d, 12, 0, 0, 0, zone)
	want := civil(time.Date(y, m, d, 0, 0, 0, 0, time.UTC))
	lo, hi := noon.Unix()-40*3600, noon.Unix()
	for hi-lo > 1 { // lo is before the day, hi is not
		mid := lo + (hi-lo)/2
		if civil(time.Unix(mid, 0).In(zone)) >= want {
			hi = mid
		} else {
			lo = mid
		}
	}
	return time.Unix(hi, 0).In(zone)
}

func civil(t time.Time) int { return (t.Year()*12+int(t.Month()))*32 + t.Day() }

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
