// Package words formats texts, numbers and times for terminals, pages and JSON.
package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
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

// Mean formats sum/n to four significant digits, or to a whole number from 1000 on: "3.214",
// "123456".
func Mean(sum, n int64) string {
	mean := float64(sum) / float64(n)
	if math.Abs(mean) >= 1000 {
		return fmt.Sprintf("%.0f", mean)
	}
	return fmt.Sprintf("%.4g", mean)
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

const (
	joiner    = '\u200d' // joins emoji
	nonJoiner = '\u200c' // separates Persian letters
	blackFlag = '\U0001f3f4'
)

// Plain returns text from outside (titles, labels, notes, IDs, messages of the upstream) as one
// line that is safe for a terminal or browser. Control codes could otherwise move the cursor, write
// to the clipboard or reverse the writing direction. A control character becomes �, a line break a
// space; invisible characters are dropped. Letters of every script, with their marks, and emoji are
// unchanged.
func Plain(text string) string {
	before, flag := rune(0), false // flag is set inside a flag emoji
	return strings.Map(func(r rune) rune {
		last := before
		before = r
		// tag characters, from U+E0020 to U+E007F, spell the region of a flag
		flag = r == blackFlag || flag && r >= 0xe0020 && r <= 0xe007f
		switch {
		case r < utf8.RuneSelf && r >= ' ' && r != '\u007f':
			return r
		case unicode.IsSpace(r) && !unicode.Is(unicode.Zs, r):
			return ' '
		case unicode.IsControl(r):
			return '�'
		case Joins(r):
			if last < utf8.RuneSelf {
				return -1
			}
			return r
		case Hidden(r) && !flag:
			return -1
		}
		return r
	}, text)
}

// Joins reports whether a character is one of the two invisible joiners, which emoji and some
// scripts need.
func Joins(r rune) bool { return r == joiner || r == nonJoiner }

// Hidden reports whether a character is an invisible control: a formatting character or a line
// separator.
func Hidden(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
		r&0xfffe == 0xfffe // a Unicode noncharacter
}

// maxWord is the maximum length of a word that may be a misspelled name.
const maxWord = 100

// DidYouMean returns " (did you mean …?)" with the known name that ends in word, as in
// youtube.videos.list for videos.list, or else the name with the fewest typos. It returns "" if no
// name is close.
func DidYouMean(word string, names []string) string {
	if word == "" || len(word) > maxWord {
		return ""
	}
	best, least := "", len(word)/3+1
	if len(word) > 3 {
		least++ // swapped letters count as two typos
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if strings.HasSuffix(name, "."+word) {
			best = name
			break
		}
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least && d < len(name) {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// Clip shortens outside text for a message.
func Clip(text string) string {
	if len(text) > maxWord {
		return strings.ToValidUTF8(text[:maxWord], "") + "…"
	}
	return text
}

// distance returns how many bytes must be inserted, deleted or replaced to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
