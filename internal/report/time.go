package report

import "time"

// Time writes itself as RFC 3339 in UTC with six digits of a second, and as null when it is zero.
type Time time.Time

const timeForm = "2006-01-02T15:04:05.000000Z"

// String is the time as in JSON, "" when it is zero.
func (t Time) String() string {
	if time.Time(t).IsZero() {
		return ""
	}
	return time.Time(t).UTC().Format(timeForm)
}

// MarshalJSON never fails.
func (t Time) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.String() + `"`), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(text []byte) error { return (*time.Time)(t).UnmarshalJSON(text) }

// Seconds is a duration in whole seconds, rounded up: who waits so long has waited long enough.
func Seconds(d time.Duration) int64 {
	if rest := d % time.Second; rest > 0 {
		d += time.Second - rest
	}
	return int64(d / time.Second)
}

// OrNull is a text for JSON: null for "".
func OrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
