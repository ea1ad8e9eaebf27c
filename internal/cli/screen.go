package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"quotabudget/internal/costs"
	"quotabudget/internal/words"
)

// Screen is the output for tables and sentences. On a terminal, tables have bars and colours and
// fit its width; in a file or a pipe they are plain and complete.
type Screen struct {
	W      io.Writer // a buffer: errors are ignored
	Bars   bool
	Color  bool
	Width  int            // columns of the terminal; 0 if unknown or no terminal
	Height int            // its lines; 0 likewise
	Zone   *time.Location // zone shown in addition to UTC; nil for none
}

// Draw writes to w, in one piece, what show draws on its screen.
func (c *Common) Draw(w io.Writer, show func(Screen)) error {
	var out bytes.Buffer
	s := c.ScreenOn(w)
	s.W = &out
	show(s)
	if out.Len() == 0 {
		return nil
	}
	_, err := w.Write(out.Bytes())
	return err
}

// ScreenOn returns the screen of w, according to --color, --utc, NO_COLOR, TERM and TZ.
func (c *Common) ScreenOn(w io.Writer) Screen {
	s := Screen{W: w, Bars: IsTerminal(w)}
	if file, ok := w.(*os.File); ok {
		s.Width, s.Height, _ = term.GetSize(int(file.Fd())) // 0 on an error
	}
	s.Color = s.Bars && c.Getenv("NO_COLOR") == "" && c.Getenv("TERM") != "dumb"
	switch c.Color {
	case "always":
		s.Color = true
	case "never":
		s.Color = false
	}
	if s.Bars && !c.UTC {
		s.Zone = readersZone(c.Getenv("TZ"))
	}
	return s
}

// readersZone returns the zone of TZ or of the machine; nil if it equals UTC.
func readersZone(name string) *time.Location {
	zone := time.Local
	if name != "" {
		var err error
		if zone, err = time.LoadLocation(strings.TrimPrefix(name, ":")); err != nil {
			return nil
		}
	}
	_, january := time.Date(2026, time.January, 1, 0, 0, 0, 0, zone).Zone()
	_, july := time.Date(2026, time.July, 1, 0, 0, 0, 0, zone).Zone()
	if january == 0 && july == 0 { // UTC, or always the same
		return nil
	}
	return zone
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Say prints a text whose arguments may come from outside. On a terminal, it breaks lines between
// words.
func (s Screen) Say(format string, args ...any) {
	lines := strings.Split(fmt.Sprintf(format, args...), "\n")
	for i, line := range lines {
		lines[i] = fold(words.Plain(line), s.Width)
	}
	io.WriteString(s.W, strings.Join(lines, "\n"))
}

// fold breaks a line between words if it is wider than most cells; 0 keeps it whole.
func fold(line string, width int) string {
	if width <= 0 || Width(line) <= width {
		return line
	}
	var out strings.Builder
	used := 0
	for i, word := range strings.Split(line, " ") {
		n := Width(word)
		switch {
		case i == 0:
		case used+1+n > width:
			out.WriteByte('\n')
			used = 0
		default:
			out.WriteByte(' ')
			used++
		}
		out.WriteString(word)
		used += n
	}
	return out.String()
}

// Moment formats a future time: in UTC, rounded up to the second, and in the reader's zone; ""
// for the zero time.
func (s Screen) Moment(t time.Time) string {
	return s.annotate(words.Moment(t), words.Ceil(t))
}

// annotate adds notes in brackets to a time in UTC. The first is the time in the reader's zone,
// with the date if it differs: "08:00:00Z (09:00:00 CET)".
func (s Screen) annotate(utc string, t time.Time, notes ...string) string {
	if s.Zone != nil && !t.IsZero() {
		here, form := t.In(s.Zone), "15:04:05 MST"
		if here.Format(time.DateOnly) != t.UTC().Format(time.DateOnly) {
			form = "2006-01-02 " + form
		}
		notes = slices.Insert(notes, 0, here.Format(form))
	}
	if len(notes) == 0 {
		return utc
	}
	return utc + " (" + strings.Join(notes, ", ") + ")"
}

// Until formats a future time and the time until then for a table: "2026-11-22 08:00:00Z (in
// 18h)", short "in 18h".
func (s Screen) Until(t, now time.Time) Cell {
	if t.IsZero() {
		return Cell{}
	}
	short := "in " + words.Span(t.Sub(now))
	return Cell{Text: s.annotate(words.Moment(t), words.Ceil(t), short), Short: short}
}

// At formats a past time for a table: to the microsecond, short to the second.
func (s Screen) At(t words.Time) Cell {
	at := time.Time(t)
	return Cell{Text: s.annotate(t.String(), at), Short: words.Moment(at.Truncate(time.Second))}
}

// On formats a future time for a table; short in UTC without the year.
func (s Screen) On(t time.Time) Cell {
	if t.IsZero() {
		return Cell{}
	}
	return Cell{Text: s.Moment(t), Short: words.Ceil(t).UTC().Format("01-02 15:04Z")}
}

// Number formats units, with separators on a terminal.
func (s Screen) Number(n int64) string {
	if s.Bars {
		return words.Count(n)
	}
	return strconv.FormatInt(n, 10)
}

// Bar draws the used part of limit in the given number of cells; empty if the screen is no
// terminal.
func (s Screen) Bar(used, limit int64, cells int) Cell {
	if !s.Bars {
		return Cell{}
	}
	full := cells
	if limit > 0 {
		full = max(int(min(used, limit)*int64(cells)/limit), int(min(used, 1)))
	}
	bar := Cell{Text: strings.Repeat("█", full) + strings.Repeat("░", cells-full), Color: Green}
	switch {
	case limit == 0 || used >= limit:
		bar.Color = Red
	case float64(used) >= 0.8*float64(limit):
		bar.Color = Yellow
	}
	return bar
}

// Amount formats n of a unit for a table whose heading does not name the unit: "$12.40", or as
// Number does.
func (s Screen) Amount(unit costs.Unit, n int64) string {
	if unit.IsMoney() {
		return unit.Text(n)
	}
	return s.Number(n)
}

// Optional formats n like Amount, and nil as "-".
func (s Screen) Optional(unit costs.Unit, n *int64) string {
	if n == nil {
		return "-"
	}
	return s.Amount(unit, *n)
}
