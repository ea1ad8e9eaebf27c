// Package words formats texts, numbers and times for terminals, pages and JSON.
package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Count formats a number with commas: "1,234".
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Plural formats a number with its noun: "1 page", "3 pages".
func Plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Count(n) + " " + noun
}

// Short formats a number in about three digits: "1.2M".
func Short(n int64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "B"}, {1e6, "M"}, {1e3, "k"}} {
		f := float64(n) / u.size
		switch {
		case math.Abs(f) >= 999.5:
			return strconv.FormatFloat(f, 'f', 0, 64) + u.name
		case math.Abs(f) >= 0.9995:
			return strconv.FormatFloat(f, 'g', 3, 64) + u.name
		}
	}
	return Count(n)
}

// Percent formats a part of 1: "0.4 %".
func Percent(part float64) string {
	switch p := 100 * part; {
	case p > 0 && p < 0.05:
		return "less than 0.1 %"
	case p < 9.95:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// Time is a time in JSON: RFC 3339 in UTC with six digits of a second, null for the zero time.
type Time time.Time

// String returns the time as in JSON; "" for the zero time.
func (t Time) String() string {
	if time.Time(t).IsZero() {
		return ""
	}
	return time.Time(t).UTC().Format("2006-01-02T15:04:05.000000Z")
}

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.String() + `"`), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Time) UnmarshalJSON(text []byte) error { return (*time.Time)(t).UnmarshalJSON(text) }

// Seconds returns a duration in whole seconds, rounded up.
func Seconds(d time.Duration) int64 { return int64(roundUp(d, time.Second) / time.Second) }

// OrNull returns a text for JSON: null for "".
func OrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

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
