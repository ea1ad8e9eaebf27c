package cli

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// Screen is where tables are drawn. On a terminal they have bars and colours; in a file or a pipe they are plain.
type Screen struct {
	W     io.Writer
	Bars  bool
	Color bool
	Width int // columns of the terminal; 0 where nobody looks, or when it does not say
}

// NewScreen looks at what w is, and at NO_COLOR and TERM.
func NewScreen(w io.Writer, getenv func(string) string) Screen {
	terminal := IsTerminal(w)
	return Screen{
		W: w, Bars: terminal, Color: terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb", Width: widthOf(w),
	}
}

func widthOf(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Fits reports whether no line of the table is longer than the screen is wide.
func (s Screen) Fits(t table.Writer) bool {
	if s.Width <= 0 {
		return true
	}
	for line := range strings.Lines(t.Render()) {
		if text.StringWidthWithoutEscSequences(strings.TrimRight(line, " \n")) > s.Width {
			return false
		}
	}
	return true
}

// IsTerminal reports whether somebody looks at w.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Table begins a table. A column whose name begins with ">" is aligned to the right.
func (s Screen) Table(columns ...string) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(nil)
	style := table.StyleDefault
	style.Name = "plain"
	style.Box = table.BoxStyle{PaddingRight: "  ", MiddleHorizontal: "-"}
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatUpper
	style.Format.Footer = text.FormatDefault
	if s.Color {
		style.Color.Header = text.Colors{text.Faint}
	}
	t.SetStyle(style)
	header := make(table.Row, len(columns))
	configs := make([]table.ColumnConfig, len(columns))
	for i, name := range columns {
		configs[i].Number = i + 1
		if right, ok := strings.CutPrefix(name, ">"); ok {
			name = right
			configs[i].Align, configs[i].AlignHeader, configs[i].AlignFooter = text.AlignRight, text.AlignRight, text.AlignRight
		}
		header[i] = name
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	return t
}

// trailing is blanks at the end of a coloured line, which stand before the code that ends the colour.
var trailing = regexp.MustCompile(` +((?:\x1b\[[0-9;]*m)+)$`)

// Draw writes the table, without blanks at the ends of its lines.
func (s Screen) Draw(t table.Writer) error {
	for line := range strings.Lines(t.Render() + "\n") {
		if _, err := fmt.Fprintln(s.W, trailing.ReplaceAllString(strings.TrimRight(line, " \n"), "$1")); err != nil {
			return err
		}
	}
	return nil
}

// Number writes units, with separators where somebody looks.
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

// Bar is how much of limit is used, in so many cells; "" where nobody looks.
func (s Screen) Bar(used, limit int64, cells int) string {
	if !s.Bars {
		return ""
	}
	full := cells
	if limit > 0 {
		full = int(min(used, limit) * int64(cells) / limit)
		if used > 0 && full == 0 {
			full = 1
		}
	}
	bar := strings.Repeat("█", full) + strings.Repeat("░", cells-full)
	if !s.Color {
		return bar
	}
	color := text.FgGreen
	switch {
	case limit == 0 || used >= limit:
		color = text.FgRed
	case float64(used) >= 0.8*float64(limit):
		color = text.FgYellow
	}
	return text.Colors{color}.Sprint(bar)
}

// Plain is a text that others wrote, without what would move the cursor or colour the screen.
func Plain(words string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '�'
		}
		return r
	}, words)
}
