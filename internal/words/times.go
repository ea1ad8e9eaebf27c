package words

import (
	"fmt"
	"strings"
	"time"
)

func roundUp(d, unit time.Duration) time.Duration {
	if excess := d % unit; excess > 0 {
		return d - excess + unit
	}
	return d - d%unit
}

// Span formats a duration in its two largest units, rounded up: "20h", "3h 12min", "45s".
func Span(d time.Duration) string {
	d = roundUp(d, time.Second)
	if d >= time.Hour {
		d = roundUp(d, time.Minute)
	}
	if d >= 48*time.Hour {
		d = roundUp(d, time.Hour)
	}
	var parts []string
	for _, u := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if u.name == "d" && d < 48*time.Hour {
			continue
		}
		if n := d / u.length; n > 0 {
			parts = append(parts, fmt.Sprintf("%d%s", n, u.name))
			d -= n * u.length
		}
	}
	if len(parts) == 0 {
		return "0s"
	}
	return strings.Join(parts, " ")
}

// Age formats the age of something in its largest unit, rounded down: "3 min". The first minute is
// "just now".
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// Moment formats a future time in UTC, rounded up to the second; "" for the zero time.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Ceil(t).UTC().Format("2006-01-02 15:04:05Z")
}

// Ceil rounds a time up to the second.
func Ceil(t time.Time) time.Time {
	if fraction := t.Nanosecond(); fraction > 0 {
		t = t.Add(time.Second - time.Duration(fraction))
	}
	return t
}

// ParseSpan parses a duration like time.ParseDuration, also with days: "7d", "1d12h".
func ParseSpan(text string) (time.Duration, error) {
	days, tail, hasDays := strings.Cut(text, "d")
	if !hasDays {
		return time.ParseDuration(text)
	}
	hours, err := time.ParseDuration(days + "h")
	if err != nil || hours > 10000*time.Hour || strings.ContainsAny(days, "hmsuµn") {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	more := time.Duration(0)
	if tail != "" {
		if more, err = time.ParseDuration(tail); err != nil {
			return 0, err
		}
	}
	sum := 24*hours + more
	if more > 0 && sum < 24*hours {
		return 0, fmt.Errorf("%q is too long", text)
	}
	return sum, nil
}
