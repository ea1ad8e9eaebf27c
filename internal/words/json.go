package words

import "time"

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
