package standin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // calendar windows must not depend on the machine's zones
)

// Limit is the number of units of a bucket that an account may use within a window. Without a
// window it is the maximum number of concurrent requests.
type Limit struct {
	Units    int64
	Window   time.Duration
	Calendar string // minute, hour, day, week or month, instead of Window
}

var calendars = []string{"minute", "hour", "day", "week", "month"}

// maxUnits keeps sums of units within an int64.
const maxUnits = 1 << 52

// ParseLimit parses UNITS/WINDOW, such as 4000/1m or 50000000/month, or UNITS alone.
func ParseLimit(text string) (Limit, error) {
	units, window, windowed := strings.Cut(text, "/")
	n, err := strconv.ParseInt(units, 10, 64)
	if err != nil || n < 0 || n > maxUnits {
		return Limit{}, fmt.Errorf("limit %q: %q is not a number of units", text, units)
	}
	l := Limit{Units: n}
	switch {
	case !windowed:
		return l, nil
	case slices.Contains(calendars, window):
		l.Calendar = window
		return l, nil
	}
	if l.Window, err = time.ParseDuration(window); err != nil || l.Window < time.Millisecond {
		return Limit{}, fmt.Errorf("limit %q: write a duration such as 1m, or one of %s", text,
			strings.Join(calendars, ", "))
	}
	return l, nil
}

// ParseLimits parses limits of the form BUCKET=UNITS/WINDOW. A bucket may have several.
func ParseLimits(specs ...string) (map[string][]Limit, error) {
	all := map[string][]Limit{}
	for _, spec := range specs {
		bucket, text, ok := strings.Cut(spec, "=")
		if !ok || bucket == "" {
			return nil, fmt.Errorf("limit %q: write BUCKET=UNITS/WINDOW, such as output=4000/1m",
				spec)
		}
		l, err := ParseLimit(text)
		if err != nil {
			return nil, err
		}
		all[bucket] = append(all[bucket], l)
	}
	return all, nil
}

// ParsePrices parses prices of the form NAME=N, in millionths of a dollar per item or token.
func ParsePrices(specs ...string) (map[string]float64, error) {
	all := map[string]float64{}
	for _, spec := range specs {
		name, text, _ := strings.Cut(spec, "=")
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || name == "" || !priced(n) {
			return nil, fmt.Errorf("price %q: write NAME=N, such as output=15, in millionths of a "+
				"dollar", spec)
		}
		all[name] = n
	}
	return all, nil
}

// priced reports whether n may be a price.
func priced(n float64) bool { return n >= 0 && n <= 1e9 }

func (l Limit) String() string {
	if l.Calendar == "" && l.Window == 0 {
		return decimal(l.Units)
	}
	window := l.Calendar
	if window == "" {
		window = strings.NewReplacer("m0s", "m", "h0m0s", "h").Replace(l.Window.String())
	}
	return decimal(l.Units) + "/" + window
}

// UnmarshalText parses a limit with ParseLimit.
func (l *Limit) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLimit(string(text))
	return err
}

// period returns the calendar period that contains t.
func (l Limit) period(t time.Time) (start, end time.Time) {
	y, m, d := t.Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, t.Location())
	switch l.Calendar {
	case "minute":
		start = t.Truncate(time.Minute)
		return start, start.Add(time.Minute)
	case "hour":
		start = t.Truncate(time.Hour)
		return start, start.Add(time.Hour)
	case "day":
		return day, day.AddDate(0, 0, 1)
	case "week": // from Monday
		start = day.AddDate(0, 0, -(int(t.Weekday())+6)%7)
		return start, start.AddDate(0, 0, 7)
	}
	start = time.Date(y, m, 1, 0, 0, 0, 0, t.Location())
	return start, start.AddDate(0, 1, 0)
}

// rate is a limit of a bucket, with its use. It either refills continuously, like a token bucket,
// or is full again at the end of a window. A window of fixed length begins with the first request
// after the previous window.
type rate struct {
	Limit
	refills bool
	used    float64
	since   time.Time // time for which used is computed, if it refills; else the window's start
	until   time.Time // end of the window
}

// turn updates the rate to now.
func (r *rate) turn(now time.Time) {
	switch {
	case r.Calendar != "":
		if start, end := r.period(now); start.After(r.since) {
			r.since, r.until, r.used = start, end, 0
		}
	case r.Window == 0:
	case r.refills:
		back := float64(r.Units) * float64(now.Sub(r.since)) / float64(r.Window)
		if now.After(r.since) {
			r.used = max(0, r.used-back)
		}
		r.since = now
	case !now.Before(r.until):
		r.since, r.used = now.Truncate(time.Second), 0 // so that headers in seconds are exact
		if r.until = r.since.Add(r.Window); !now.Before(r.until) {
			r.since, r.until = now, now.Add(r.Window)
		}
	}
}

// left returns the remaining whole units, at least 0.
func (r *rate) left() int64 { return max(0, int64(float64(r.Units)-r.used)) }

// fits reports whether n more units fit.
func (r *rate) fits(n int64) bool { return n == 0 || r.used+float64(n) <= float64(r.Units) }

// when returns the time from which n units fit. For 0 units, it returns the time at which the rate
// is full again if it is not used meanwhile.
func (r *rate) when(now time.Time, n int64) time.Time {
	if !r.refills || r.Calendar != "" || r.Window == 0 || r.Units == 0 {
		return r.until
	}
	over := r.used
	if n > 0 {
		over = r.used + float64(n) - float64(r.Units)
	}
	over = min(max(0, over), float64(r.Units))
	return now.Add(time.Duration(over / float64(r.Units) * float64(r.Window)))
}
