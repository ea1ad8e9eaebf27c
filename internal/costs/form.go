package costs

import (
	"cmp"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Form is a notation of values.
type Form string

// Forms of values.
const (
	FormNumber   Form = "number"   // 1040
	FormRFC3339  Form = "rfc3339"  // 2026-11-22T15:04:05Z
	FormEpoch    Form = "epoch"    // 1795359845 in seconds, or as many digits as milliseconds need
	FormDuration Form = "duration" // 6m0s, 12ms; a plain number is seconds
	FormSeconds  Form = "seconds"  // 30, from now; or the date of HTTP, as Retry-After has it
	FormMillis   Form = "millis"   // 1500, from now, as retry-after-ms has it
	FormDate     Form = "date"     // the first date in a text: until 2026-12-01 at 00:00 UTC
)

// farthest is the maximum distance of a time. A time beyond it was misread: an epoch as seconds
// from now, or the reverse.
const farthest = 400 * 24 * time.Hour

const (
	firstEpoch = 1_000_000_000 // 2001
	lastEpoch  = 1 << 33       // 2242
)

// limitPart is the role of a number of units in a limit.
type limitPart string

// The parts of a limit.
const (
	partLimit     limitPart = "limit"
	partUsed      limitPart = "used"
	partRemaining limitPart = "remaining"
)

// parseAmount reads a whole number of units, rounded down. A text such as 32/40 contains the units
// used and the limit, which also gives the remaining units. It returns false if the number is
// negative, missing or not a number.
func parseAmount(text string, part limitPart) (int64, bool) {
	used, limit, both := strings.Cut(text, "/")
	if !both {
		if first, windows, ok := strings.Cut(text, ","); ok && part == partLimit &&
			strings.Contains(windows, ";w=") { // RateLimit-Limit: 100, 100;w=60
			text = first
		}
		return whole(text)
	}
	u, ok := whole(used)
	l, also := whole(limit)
	n := map[limitPart]int64{partLimit: l, partUsed: u, partRemaining: max(l-u, 0)}[part]
	return n, ok && also
}

func whole(text string) (int64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(n >= 0 && n <= 1<<53) {
		return 0, false
	}
	return int64(n), true
}

// ParseMoment parses a time in a form, as a moment or a duration from now. It returns false if it
// is unreadable or too far away.
func ParseMoment(text string, as Form) (at time.Time, after time.Duration, ok bool) {
	text = strings.TrimSpace(text)
	switch as {
	case FormRFC3339:
		at, err := time.Parse(time.RFC3339, text)
		return at, 0, err == nil && at.Unix() >= firstEpoch && at.Unix() < lastEpoch
	case FormEpoch:
		n, err := strconv.ParseFloat(text, 64)
		for range 3 { // seconds, milli-, micro- or nanoseconds
			if n >= 1000*firstEpoch {
				n /= 1000
			}
		}
		if err != nil || !(n >= firstEpoch && n < lastEpoch) {
			return at, 0, false
		}
		whole, part := math.Modf(n)
		return time.Unix(int64(whole), int64(part*1e9)).UTC(), 0, true
	case FormDuration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return until(text, time.Second)
		}
		return at, d, d > 0 && d <= farthest
	case FormSeconds:
		if at, err := time.Parse(http.TimeFormat, text); err == nil {
			return at, 0, true
		}
		return until(last(text), time.Second)
	case FormMillis:
		return until(last(text), time.Millisecond)
	case FormDate:
		m := dateForm.FindStringSubmatch(text)
		if m == nil {
			return at, 0, false
		}
		zone := m[4]
		if zone == "" || zone == "UTC" || zone == "GMT" {
			zone = "Z"
		}
		at, err := time.Parse(time.RFC3339, m[1]+"T"+cmp.Or(m[2], "00:00")+cmp.Or(m[3], ":00")+zone)
		return at.UTC(), 0, err == nil
	}
	return at, 0, false
}

// dateForm matches a day, and the time that follows it, if any: 2026-12-01 at 00:00 UTC.
var dateForm = regexp.MustCompile(`(\d{4}-\d\d-\d\d)(?:(?:T|,? (?:at )?)` +
	`(\d\d:\d\d)(:\d\d)?(?:\.\d+)? ?(Z|UTC|GMT|[+-]\d\d:\d\d)?)?`)

// last returns the last item of a list, such as a repeated header.
func last(text string) string { return strings.TrimSpace(text[strings.LastIndex(text, ",")+1:]) }

// until reads how many units of time it is until a moment.
func until(text string, unit time.Duration) (at time.Time, after time.Duration, ok bool) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n <= float64(farthest/unit)) {
		return at, 0, false
	}
	return at, time.Duration(n * float64(unit)), true
}

// fieldParam returns the first of the named parameters of an item in a text of structured fields,
// such as r of `"daily";r=50;t=30` (RateLimit) or limit of `limit=100, remaining=50`. Of several
// items it reads the item of that name. It returns false if there is no such text, item or
// parameter, or if there are several items and no name is given.
func fieldParam(text, item string, names ...string) (string, bool) {
	var values []string
	for _, member := range splitOutside(text, ',') {
		parts := splitOutside(member, ';')
		name := strings.Trim(strings.TrimSpace(parts[0]), `"`)
		if item != "" && name != item {
			continue
		}
		if value, ok := valueOf(parts, names); ok {
			values = append(values, value)
		}
	}
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

// valueOf returns the value of the first of the names that the parts define as name=value.
func valueOf(parts, names []string) (string, bool) {
	for _, name := range names {
		for _, part := range parts {
			key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
			if ok && key == name {
				return strings.Trim(value, `"`), true
			}
		}
	}
	return "", false
}

// splitOutside splits a text at marks outside quotes.
func splitOutside(text string, mark byte) (parts []string) {
	quoted, begin := false, 0
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == mark && !quoted:
			parts, begin = append(parts, text[begin:i]), i+1
		}
	}
	return append(parts, text[begin:])
}
