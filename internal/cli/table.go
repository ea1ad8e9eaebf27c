package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// Color is the colour of a cell. A table without colours shows the same in words.
type Color string

// Colours, as terminal codes.
const (
	Faint  Color = "2"
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
)

// Cell is a text in a table. An int64 is formatted by Screen.Number, a nil *int64 as "-", and
// other values by fmt.Sprint.
type Cell struct {
	Text  string
	Short string // text for a shortened column; "" if it is the same
	Color Color
}

// Table is a heading with rows.
type Table struct {
	// Rows calls row for each row that follows the appended ones, for a table too long for
	// memory. Draw calls it twice: for the widths, and for the lines.
	Rows func(row func(cells []any) error) error

	headed       bool // the heading is drawn
	number       func(int64) string
	names        []string
	right        []bool // aligned right
	rows         [][]measured
	whole, short []int // widest cell of each column, whole and short
}

// measured is a cell with its widths, whole and short.
type measured struct {
	Cell
	whole, short int
}

func measure(c Cell) measured {
	c.Text, c.Short = Plain(c.Text), Plain(c.Short)
	if c.Short == "" {
		c.Short = c.Text
	}
	return measured{c, width(c.Text), width(c.Short)}
}

// Table begins a table. A column whose name begins with ">" is aligned right.
func (s Screen) Table(columns ...string) *Table {
	t := &Table{number: s.Number}
	for _, name := range columns {
		name, right := strings.CutPrefix(name, ">")
		t.names, t.right = append(t.names, name), append(t.right, right)
	}
	t.whole, t.short = make([]int, len(columns)), make([]int, len(columns))
	return t
}

// AppendRow adds a row of cells with any text. It may have fewer cells than there are columns.
func (t *Table) AppendRow(cells []any) { t.AppendColored("", cells) }

// AppendColored adds a row in one colour, except for cells with a colour.
func (t *Table) AppendColored(color Color, cells []any) {
	t.rows = append(t.rows, t.measure(color, cells))
}

func (t *Table) each(do func(row []measured) error) error {
	for _, row := range t.rows {
		if err := do(row); err != nil {
			return err
		}
	}
	if t.Rows == nil {
		return nil
	}
	return t.Rows(func(cells []any) error { return do(t.measure("", cells)) })
}

func (t *Table) measure(color Color, cells []any) []measured {
	row := make([]measured, len(cells))
	for i, value := range cells {
		var c Cell
		switch value := value.(type) {
		case Cell:
			c = value
		case int64:
			c.Text = t.number(value)
		case *int64:
			if c.Text = "-"; value != nil {
				c.Text = t.number(*value)
			}
		default:
			c.Text = fmt.Sprint(value)
		}
		if c.Color == "" {
			c.Color = color
		}
		row[i] = measure(c)
	}
	return row
}

// Step narrows a table that is excess cells too wide.
type Step func(l *layout, excess int)

// Shorten shows the short form of a column.
func Shorten(column string) Step {
	return func(l *layout, _ int) { l.short[l.find(column)] = true }
}

// Drop removes a column.
func Drop(column string) Step {
	return func(l *layout, _ int) { l.dropped[l.find(column)] = true }
}

// Cut truncates the texts of a column with "…", to no fewer than least cells.
func Cut(column string, least int) Step {
	return func(l *layout, excess int) {
		i := l.find(column)
		l.most[i] = max(l.widths()[i]-excess, least)
	}
}

// All combines several steps into one.
func All(steps ...Step) Step {
	return func(l *layout, excess int) {
		for _, step := range steps {
			step(l, excess)
		}
	}
}

// Draw writes the table. If it is wider than the screen, Draw applies the steps in order until it
// fits. A second Draw, with other Rows, continues below: without a heading, and with no column
// narrower.
func (s Screen) Draw(t *Table, steps ...Step) error {
	err := t.each(func(row []measured) error {
		for i := range min(len(row), len(t.names)) {
			t.whole[i], t.short[i] = max(t.whole[i], row[i].whole), max(t.short[i], row[i].short)
		}
		return nil
	})
	if err != nil {
		return err
	}
	n := len(t.names)
	l := &layout{t, make([]bool, n), make([]bool, n), make([]int, n)}
	for i, w := range l.widths() {
		l.dropped[i] = w == 0 // an empty column, such as a bar in a file
	}
	for _, step := range steps {
		if excess := l.total() - s.Width; s.Width > 0 && excess > 0 {
			step(l, excess)
		}
	}
	return l.write(s)
}

type layout struct {
	*Table
	dropped, short []bool
	most           []int // maximum cells; 0 for no maximum
}

const gap = 2 // between columns

func (l *layout) find(column string) int {
	i := slices.Index(l.names, column)
	if i < 0 {
		panic("cli: no column " + column)
	}
	return i
}

func (l *layout) text(row []measured, column int) string {
	text := row[column].Text
	if l.short[column] {
		text = row[column].Short
	}
	return clip(text, l.most[column])
}

// widths returns the widths of the columns; 0 for a dropped one.
func (l *layout) widths() []int {
	widths := make([]int, len(l.names))
	for i, name := range l.names {
		if l.dropped[i] {
			continue
		}
		n := l.whole[i]
		if l.short[i] {
			n = l.Table.short[i]
		}
		if most := l.most[i]; most > 0 {
			n = min(n, most)
		}
		widths[i] = max(width(name), n)
	}
	return widths
}

func (l *layout) total() int {
	sum := -gap
	for i, w := range l.widths() {
		if !l.dropped[i] {
			sum += w + gap
		}
	}
	return sum
}

func (l *layout) write(s Screen) error {
	head := make([]measured, len(l.names))
	for i, name := range l.names {
		head[i] = measure(Cell{Text: strings.ToUpper(name), Color: Faint})
	}
	widths := l.widths()
	out := bufio.NewWriter(s.W)
	if !l.headed {
		out.WriteString(l.line(head, widths, s.Color)) // Flush returns the error
	}
	l.headed = true
	err := l.each(func(row []measured) error {
		_, err := out.WriteString(l.line(row, widths, s.Color))
		return err
	})
	return cmp.Or(err, out.Flush())
}

// line returns one row, without trailing blanks.
func (l *layout) line(row []measured, widths []int, colored bool) string {
	var out strings.Builder
	blanks := 0
	for i := range min(len(row), len(widths)) {
		if l.dropped[i] {
			continue
		}
		text := l.text(row, i)
		pad := widths[i] - width(text)
		if l.right[i] {
			blanks, pad = blanks+pad, 0
		}
		if text != "" {
			if row[i].Color != "" && colored {
				text = "\x1b[" + string(row[i].Color) + "m" + text + "\x1b[0m"
			}
			out.WriteString(strings.Repeat(" ", blanks) + text)
			blanks = 0
		}
		blanks += pad + gap
	}
	return out.String() + "\n"
}

var coloring = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Width returns the cells that a line of this package takes on a terminal.
func Width(line string) int { return width(coloring.ReplaceAllString(line, "")) }

// width returns the cells that a text takes on a terminal that joins emoji, or on one that does
// not, whichever is more.
func width(text string) int {
	if isASCII(text) {
		return len(text)
	}
	sum := 0
	for state := -1; text != ""; {
		var cluster string
		var joined int
		cluster, text, joined, state = uniseg.FirstGraphemeClusterInString(text, state)
		sum += max(joined, apart(cluster))
	}
	return sum
}

// apart returns the width of a cluster on a terminal that draws its characters separately.
func apart(cluster string) int {
	sum := 0
	for _, r := range cluster {
		switch {
		case unicode.Is(unicode.Regional_Indicator, r): // a letter of a flag
			sum++
		case r >= 0x1f3fb && r <= 0x1f3ff: // a skin colour
			sum += 2
		default:
			sum += uniseg.StringWidth(string(r))
		}
	}
	return sum
}

// clip truncates a text that is wider than most cells, between grapheme clusters; 0 keeps it
// whole.
func clip(text string, most int) string {
	if most <= 0 || width(text) <= most {
		return text
	}
	used, kept := 0, 0
	for rest, state := text, -1; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used += width(cluster); used > most-1 {
			break
		}
		kept += len(cluster)
	}
	return strings.TrimRight(text[:kept], " ") + "…"
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
