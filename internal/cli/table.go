package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"quotabudget/internal/words"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
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

// Cell is a table cell.
type Cell struct {
	Text  string
	Short string // text for a narrow column; "" for Text
	Color Color
}

// Row is a row of a table: names of columns and cells alternate, as in Row{"bucket", b.Name,
// ">units", b.Units}. A name that begins with ">" aligns its column right. A Color in front applies
// to all cells of the row without their own. A later row may omit columns of the first, but must
// keep their order.
//
// A cell is a Cell or any value. In a table, Screen.Number formats an int64, fmt.Sprint most other
// values; a nil *int64 is "-", a nil *string "".
type Row []any

// Table is a heading with rows. The first row names the columns.
type Table struct {
	columns []column
	lines   []line
	rows    [][]Cell
	headed  bool // the heading has been printed
}

// column is a column: its name, position and width.
type column struct {
	table.ColumnConfig
	short bool // show the short form
}

// line is a row whose cells are not formatted yet.
type line struct {
	item  any
	color Color
	cells []any
}

// View returns a table with a row for each item. Without items, the row of T's zero value names the
// columns.
func View[T any](items []T, row func(T) Row) *Table {
	t := new(Table)
	Extend(t, items, row)
	return t
}

// Extend adds a row for each item, as View does.
func Extend[T any](t *Table, items []T, row func(T) Row) {
	if len(items) == 0 && t.columns == nil {
		var none T
		t.add(nil, row(none))
		t.lines = nil
	}
	for _, item := range items {
		t.add(item, row(item))
	}
}

// Add adds a row.
func (t *Table) Add(row Row) { t.add(nil, row) }

// More adds a row with the number of omitted items in a column, if there are any.
func (t *Table) More(column string, items int) {
	if items > 0 {
		t.Add(Row{column, fmt.Sprintf("… %d more", items)})
	}
}

func (t *Table) add(item any, row Row) {
	l := line{item: item}
	if color, ok := row[0].(Color); ok {
		l.color, row = color, row[1:]
	}
	isFirst := t.columns == nil
	for i := 0; i < len(row); i += 2 {
		name, isRight := strings.CutPrefix(row[i].(string), ">")
		if isFirst {
			c := column{}
			c.Number, c.Name, c.Align = i/2+1, name, text.AlignLeft
			if isRight {
				c.Align = text.AlignRight
			}
			c.AlignHeader = c.Align
			c.WidthMaxEnforcer = func(cell string, width int) string {
				return text.Snip(cell, width, "…")
			}
			t.columns = append(t.columns, c)
		}
		for len(l.cells) < len(t.columns) && t.columns[len(l.cells)].Name != name {
			l.cells = append(l.cells, "")
		}
		if len(l.cells) == len(t.columns) {
			panic("the first row has no column " + name + ", or has it earlier")
		}
		l.cells = append(l.cells, row[i+1])
	}
	for len(l.cells) < len(t.columns) {
		l.cells = append(l.cells, "")
	}
	t.lines = append(t.lines, l)
}

// format formats the cells for a screen.
func (t *Table) format(s Screen) {
	for _, l := range t.lines {
		row := make([]Cell, len(l.cells))
		for i, value := range l.cells {
			c := &row[i]
			switch value := value.(type) {
			case Cell:
				*c = value
			case int64:
				c.Text = s.Number(value)
			case *int64:
				if c.Text = "-"; value != nil {
					c.Text = s.Number(*value)
				}
			case *string:
				if value != nil {
					c.Text = *value
				}
			default:
				c.Text = fmt.Sprint(value)
			}
			c.Text, c.Short, c.Color = inCell(c.Text), inCell(c.Short), cmp.Or(c.Color, l.color)
		}
		t.rows = append(t.rows, row)
	}
	t.lines = nil
}

// inCell makes text safe to show. It drops emoji selectors, because terminals disagree on their
// width.
func inCell(text string) string { return strings.ReplaceAll(words.Plain(text), "\ufe0f", "") }

// Step narrows a table that is excess cells too wide.
type Step func(t *Table, excess int)

// Shorten shows the short form of a column.
func Shorten(name string) Step { return func(t *Table, _ int) { t.find(name).short = true } }

// Drop removes a column.
func Drop(name string) Step { return func(t *Table, _ int) { t.find(name).Hidden = true } }

// Cut truncates the texts of a column with "…", to no fewer than least cells.
func Cut(name string, least int) Step {
	return func(t *Table, excess int) {
		c := t.find(name)
		c.WidthMax = max(t.width(c)-excess, least, Width(name))
	}
}

// All combines several steps into one.
func All(steps ...Step) Step {
	return func(t *Table, excess int) {
		for _, step := range steps {
			step(t, excess)
		}
	}
}

func (t *Table) find(name string) *column {
	i := slices.IndexFunc(t.columns, func(c column) bool { return c.Name == name })
	if i < 0 {
		panic("cli: no column " + name)
	}
	return &t.columns[i]
}

// width returns the width of a column in cells.
func (t *Table) width(c *column) int {
	widest := max(Width(c.Name), c.WidthMin)
	for _, row := range t.rows {
		widest = max(widest, Width(c.text(row)))
	}
	if c.WidthMax > 0 {
		widest = min(widest, c.WidthMax)
	}
	return widest
}

func (c *column) text(row []Cell) string {
	cell := row[c.Number-1]
	if c.short && cell.Short != "" {
		return cell.Short
	}
	return cell.Text
}

// Draw writes the table. If it is wider than the screen, Draw applies the steps in order until it
// fits. A second Draw continues below with the rows appended since: without a heading, and with no
// column narrower.
func (s Screen) Draw(t *Table, steps ...Step) {
	t.format(s)
	for i := range t.columns {
		if c := &t.columns[i]; c.Name == "" && t.width(c) == 0 {
			c.Hidden = true // such as a bar in a file
		}
	}
	drawn := t.render(s.Color)
	for _, step := range steps {
		excess := text.LongestLineLen(drawn) - s.Width
		if s.Width <= 0 || excess <= 0 {
			break
		}
		step(t, excess)
		drawn = t.render(s.Color)
	}
	for i := range t.columns {
		t.columns[i].WidthMin = t.width(&t.columns[i])
	}
	t.rows, t.headed = nil, true
	io.WriteString(s.W, drawn)
}

func (t *Table) render(colored bool) string {
	paint := func(text string, color Color) any {
		if color == "" || !colored || text == "" {
			return text
		}
		return "\x1b[" + string(color) + "m" + text + "\x1b[0m"
	}
	w := table.NewWriter()
	w.SetStyle(table.Style{Box: table.BoxStyle{PaddingRight: "  "}})
	w.SuppressTrailingSpaces()
	var head table.Row
	var configs []table.ColumnConfig
	for _, c := range t.columns {
		head, configs = append(head, paint(strings.ToUpper(c.Name), Faint)),
			append(configs, c.ColumnConfig)
	}
	w.SetColumnConfigs(configs)
	if !t.headed {
		w.AppendHeader(head)
	}
	for _, row := range t.rows {
		var cells table.Row
		for i, cell := range row {
			cells = append(cells, paint(t.columns[i].text(row), cell.Color))
		}
		w.AppendRow(cells)
	}
	if t.headed && len(t.rows) == 0 {
		return ""
	}
	return w.Render() + "\n"
}

// Width returns the width of a text on a terminal, without colours.
func Width(line string) int { return text.StringWidthWithoutEscSequences(line) }
