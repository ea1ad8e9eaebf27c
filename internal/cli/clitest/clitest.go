// Package clitest checks what a person sees of a program.
package clitest

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/width"
)

var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// lines returns the lines written, without colours.
func lines(written string) []string {
	return strings.Split(strings.ReplaceAll(colors.ReplaceAllString(written, ""), "\r\n", "\n"),
		"\n")
}

// Loud returns the first line of a program's output that contains a terminal sequence other than
// line breaks and the program's own colours, or "".
func Loud(written string) string {
	obeyed := func(r rune) bool {
		return unicode.IsControl(r) || strings.ContainsRune("\u200b\ufeff\u00ad", r) ||
			unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
	}
	for _, line := range lines(written) {
		if strings.ContainsFunc(line, obeyed) {
			return line
		}
	}
	return ""
}

// Fits checks that no line written to a terminal is wider than columns.
func Fits(t *testing.T, columns int, written string) {
	t.Helper()
	for _, line := range lines(written) {
		if n := cells(line); n > columns {
			t.Errorf("a line of %d cells on %d columns: %q", n, columns, line)
		}
	}
}

// cells counts like a terminal that joins no characters.
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
