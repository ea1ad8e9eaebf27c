// Package strike decides which requests to a stand-in fail.
package strike

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// When holds the conditions under which a fault strikes. All must hold; a zero one always does.
type When struct {
	// From and To bound the request number, which counts from 1 over all requests outside
	// /standin/.
	From, To int64
	// Every matches request numbers that are a multiple of it.
	Every int64
	// Times is how often the fault strikes in all.
	Times int64
}

// Hits reports whether the fault strikes a request, by its number and how often the fault has
// struck.
func (w When) Hits(number, struck int64) bool {
	return number >= w.From && (w.To == 0 || number <= w.To) &&
		(w.Every == 0 || number%w.Every == 0) && (w.Times == 0 || struck < w.Times)
}

// Parse reads a fault of the form KIND[@FROM[-[TO]]][/EVERY][*TIMES], with its conditions in any
// order. others parse the conditions behind other marks.
func Parse(spec string, kinds []string, others map[byte]func(string) error) (
	kind string, w When, err error) {
	marks := "@/*"
	for mark := range others {
		marks += string(mark)
	}
	next := func(text string) (string, string) {
		if i := strings.IndexAny(text, marks); i >= 0 {
			return text[:i], text[i:]
		}
		return text, ""
	}
	kind, rest := next(spec)
	if !slices.Contains(kinds, kind) {
		err = fmt.Errorf("kind %q is not one of %s", kind, strings.Join(kinds, ", "))
	}
	for rest != "" && err == nil {
		var value string
		mark := rest[0]
		value, rest = next(rest[1:])
		switch other := others[mark]; {
		case other != nil:
			err = other(value)
		case mark == '/':
			w.Every, err = Positive(value)
		case mark == '*':
			w.Times, err = Positive(value)
		default:
			err = w.within(value)
		}
	}
	if err != nil {
		err = fmt.Errorf("fault %q: %w", spec, err)
	}
	return kind, w, err
}

// within reads a range of requests.
func (w *When) within(text string) (err error) {
	from, to, ranged := strings.Cut(text, "-")
	if w.From, err = Positive(from); err != nil || !ranged {
		w.To = w.From
		return err
	}
	if w.To = 0; to != "" {
		w.To, err = Positive(to)
	}
	return err
}

// Positive reads a whole number above 0.
func Positive(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number above 0", text)
	}
	return n, nil
}
