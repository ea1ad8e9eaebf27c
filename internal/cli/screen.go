package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
)

// Screen is where tables and sentences for people go. On a terminal tables have bars and colours
// and fit its width; in a file or a pipe they are plain and whole.
type Screen struct {
	W     io.Writer
	Bars  bool
	Color bool
	Width int            // columns of the terminal; 0 if there is none, or if it does not say
	Zone  *time.Location // the reader's, shown beside UTC; nil for UTC alone
}

// Screen is the screen for results, by --color and --utc, and by NO_COLOR, TERM and TZ.
func (c *Common) Screen() Screen { return c.ScreenOn(c.Stdout) }

// ScreenOn is the same for w.
func (c *Common) ScreenOn(w io.Writer) Screen {
	s := Screen{W: w, Bars: IsTerminal(w), Width: widthOf(w)}
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

// readersZone is the zone that TZ names, or that of the machine; nil where it is UTC.
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

func widthOf(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, _ := term.GetSize(int(file.Fd())) // 0 with an error
	return width
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Say writes a text for people; its arguments may come from outside. On a terminal, lines are
// broken between words.
func (s Screen) Say(format string, args ...any) error {
	lines := strings.Split(fmt.Sprintf(format, args...), "\n")
	for i, line := range lines {
		lines[i] = fold(Plain(line), s.Width)
	}
	_, err := io.WriteString(s.W, strings.Join(lines, "\n"))
	return err
}

// fold breaks a line between words, where it is wider than most cells; 0 leaves it whole.
func fold(line string, most int) string {
	if most <= 0 || width(line) <= most {
		return line
	}
	var out strings.Builder
	used := 0
	for i, word := range strings.Split(line, " ") {
		n := width(word)
		switch {
		case i == 0:
		case used+1+n > most:
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

// Moment is a future time for people: in UTC, rounded up to the second, and in the reader's zone;
// "" if it is zero.
func (s Screen) Moment(t time.Time) string {
	return s.annotate(Moment(t), ceiling(t))
}

// annotate adds notes in brackets to a time in UTC, the first of them the time in the reader's
// zone: "08:00:00Z (09:00:00 CET)". The date is with it if it differs from that in UTC.
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

// Until is a future time in a table, with the time until then: "2026-11-22 08:00:00Z (in 18h)", in
// short "in 18h".
func (s Screen) Until(t, now time.Time) Cell {
	if t.IsZero() {
		return Cell{}
	}
	short := "in " + Span(t.Sub(now))
	return Cell{Text: s.annotate(Moment(t), ceiling(t), short), Short: short}
}

// At is a past time in a table: to the microsecond, in short to the second.
func (s Screen) At(t Time) Cell {
	at := time.Time(t)
	return Cell{Text: s.annotate(t.String(), at), Short: Moment(at.Truncate(time.Second))}
}

// On is a future time in a table; in short it is in UTC alone, without the year.
func (s Screen) On(t time.Time) Cell {
	if t.IsZero() {
		return Cell{}
	}
	return Cell{Text: s.Moment(t), Short: ceiling(t).UTC().Format("01-02 15:04Z")}
}

// Number writes units, with separators on a terminal.
func (s Screen) Number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	if !s.Bars {
		return digits
	}
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Bar is how much of limit is used, in so many cells; empty if the screen is no terminal.
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
