package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/words"
)

func TestTable(t *testing.T) {
	draw := func(s Screen, steps ...Step) string {
		var out strings.Builder
		s.W = &out
		table := View([]string{"東京の一番長いお話"}, func(note string) Row {
			return Row{"name", "one", "", s.Bar(1, 2, 4), ">units", int64(1234),
				"at", Cell{Text: "2026-11-22 08:00:00Z", Short: "08:00Z"}, "note", note}
		})
		table.Add(Row{Red, "name", "\x1b[2Jtwo", "", s.Bar(2, 2, 4), ">units", 5,
			"note", "a note of some length"})
		table.Add(Row{"name", "… 3 more", ">units", (*int64)(nil),
			"at", Cell{Text: "8", Short: "8\x1b"}})
		s.Draw(table, steps...)
		return out.String()
	}
	steps := []Step{Shorten("at"), Cut("note", 10), Drop(""), Cut("note", 4), Drop("note")}
	for _, c := range []struct {
		name string
		s    Screen
		want string
	}{
		{"in a pipe", Screen{}, `
NAME      UNITS  AT                    NOTE
one        1234  2026-11-22 08:00:00Z  東京の一番長いお話
�[2Jtwo       5                        a note of some length
… 3 more      -  8
`},
		{"wide", Screen{Bars: true, Width: 70}, `
NAME            UNITS  AT                    NOTE
one       ██░░  1,234  2026-11-22 08:00:00Z  東京の一番長いお話
�[2Jtwo   ████      5                        a note of some length
… 3 more            -  8
`},
		{"shortened", Screen{Bars: true, Width: 52}, `
NAME            UNITS  AT      NOTE
one       ██░░  1,234  08:00Z  東京の一番長いお話
�[2Jtwo   ████      5          a note of some length
… 3 more            -  8�
`},
		{"cut", Screen{Bars: true, Width: 42}, `
NAME            UNITS  AT      NOTE
one       ██░░  1,234  08:00Z  東京の一番…
�[2Jtwo   ████      5          a note of …
… 3 more            -  8�
`},
		{"dropped", Screen{Bars: true, Width: 23}, `
NAME      UNITS  AT
one       1,234  08:00Z
�[2Jtwo       5
… 3 more      -  8�
`},
	} {
		got := draw(c.s, steps...)
		if got != c.want[1:] {
			t.Errorf("%s: got\n%s\nwant%s", c.name, got, c.want)
		}
		for line := range strings.Lines(got) {
			if n := Width(strings.TrimSuffix(line, "\n")); c.s.Width > 0 && n > c.s.Width {
				t.Errorf("%s: a line of %d cells", c.name, n)
			}
		}
	}
	got := draw(Screen{Bars: true, Color: true}, steps...)
	for _, want := range []string{"31m�[2Jtwo\x1b[0m", "32m██░░\x1b[0m", "2mNAME\x1b[0m"} {
		if !strings.Contains(got, "\x1b["+want) {
			t.Errorf("in colour: %q", got)
		}
	}
}

// TestRows: each row has a cell for every column, so that every line of CSV does.
func TestRows(t *testing.T) {
	table := new(Table)
	table.Add(Row{"a", 1, "b", 2, "c", 3})
	table.Add(Row{"b", 2})
	for _, l := range table.lines {
		if len(l.cells) != 3 {
			t.Errorf("%v", l.cells)
		}
	}
	for _, row := range []Row{{"d", 1}, {"b", 1, "a", 1}, {"a", 1, "a", 1}} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, "no column") {
					t.Errorf("%v: panics with %s", row, said)
				}
			}()
			table.Add(row)
		}()
	}
}

// TestContinued: the rows of a second Draw are aligned with those of the first.
func TestContinued(t *testing.T) {
	var out strings.Builder
	s := Screen{W: &out}
	table := new(Table)
	for _, batch := range []struct {
		numbers []int
		more    int
	}{{nil, 0}, {[]int{1}, 0}, {nil, -1}, {[]int{22}, 3}} {
		Extend(table, batch.numbers, func(n int) Row {
			return Row{"a", fmt.Sprint(n, " text"), ">b", n}
		})
		table.More("a", batch.more)
		s.Draw(table)
	}
	want := "A  B\n1 text  1\n22 text   22\n… 3 more\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}

// TestReadersZone: on a terminal the reader's zone appears once next to UTC, with the date if
// that differs.
func TestReadersZone(t *testing.T) {
	at := time.Date(2026, 11, 22, 1, 2, 3, 4, time.UTC)
	for tz, want := range map[string]string{
		"Europe/Berlin":       "2026-11-22 01:02:04Z (02:02:04 CET)",
		":Europe/Berlin":      "2026-11-22 01:02:04Z (02:02:04 CET)",
		"America/Los_Angeles": "2026-11-22 01:02:04Z (2026-11-21 17:02:04 PST)",
		"Asia/Kathmandu":      "2026-11-22 01:02:04Z (06:47:04 +0545)",
		"UTC":                 "2026-11-22 01:02:04Z",
		"Etc/UTC":             "2026-11-22 01:02:04Z",
		"Nowhere/Else":        "2026-11-22 01:02:04Z",
	} {
		if got := (Screen{Zone: readersZone(tz)}).Moment(at); got != want {
			t.Errorf("%s: %s, want %s", tz, got, want)
		}
	}
	s := Screen{Zone: readersZone("Europe/Berlin")}
	until := s.Until(at, at.Add(-3*time.Hour))
	if until.Text != "2026-11-22 01:02:04Z (02:02:04 CET, in 3h)" || until.Short != "in 3h" {
		t.Errorf("%+v", until)
	}
	if s.Moment(time.Time{}) != "" || s.Until(time.Time{}, at) != (Cell{}) ||
		s.On(time.Time{}) != (Cell{}) || s.At(words.Time{}).Text != "" {
		t.Error("no time is written as one")
	}
}

func TestScreen(t *testing.T) {
	plain, drawn := Screen{}, Screen{Bars: true}
	if plain.Number(1234567) != "1234567" || drawn.Number(1234567) != "1,234,567" ||
		plain.Bar(1, 2, 4).Text != "" {
		t.Error("a plain screen is not plain")
	}
	for _, c := range []struct {
		used, limit int64
		want        string
	}{{0, 100, "░░░░"}, {1, 100, "█░░░"}, {50, 100, "██░░"}, {99, 100, "███░"}, {100, 100, "████"},
		{300, 100, "████"}, {0, 0, "████"}} {
		if got := drawn.Bar(c.used, c.limit, 4).Text; got != c.want {
			t.Errorf("%d of %d: %s", c.used, c.limit, got)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"short\nlines are", "short\nlines are"},
		{"one two three\nfour", "one two\nthree four"},
		{"größe größe x", "größe\ngröße x"},
		{"fits\n\none two three four", "fits\n\none two\nthree four"},
		{"a list:\n  one  two three\n  b    four", "a list:\n  one  two\n       three\n  b    four"},
		{"  a  one\n     two\n  b  x", "  a  one\n     two\n  b  x"},
		{"averylongword is", "averylongword\nis"},
	} {
		if got := wrap(c.text, 10); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
