// Package clitest shows tests what a person sees of a program.
package clitest

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/width"
)

var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Loud is the first thing in what a program wrote that a terminal would obey, but for line breaks
// and the program's own colours; "" when there is none.
func Loud(written string) string {
	for line := range strings.Lines(colors.ReplaceAllString(written, "")) {
		line = strings.TrimRight(line, "\r\n")
		loud := strings.ContainsFunc(line, func(r rune) bool {
			return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl,
				unicode.Zp) ||
				r == '\u200b' || r == '\ufeff' || r == '\u00ad'
		})
		if loud {
			return line
		}
	}
	return ""
}

// Fits wants every line of what was written on a terminal to be of so many cells at most.
func Fits(t *testing.T, columns int, written string) {
	t.Helper()
	for line := range strings.Lines(colors.ReplaceAllString(written, "")) {
		line = strings.TrimRight(line, "\r\n")
		if n := cells(line); n > columns {
			t.Errorf("a line of %d cells on %d columns: %q", n, columns, line)
		}
	}
}

// cells counts as terminals do that know of no joining: each character by itself.
func cells(line string) int {
	sum := 0
	for _, r := range line {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			sum += 2
		default:
			sum++
		}
	}
	return sum
}
