package costs

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// tableReader makes one table.
type tableReader struct {
	*reader
	formula.Table
	defaults    map[string]yaml.Node // by column: a figure, or another column
	usualSource string
}

// rowKeys are the keys of a row with columns that are not columns.
var rowKeys = []string{"above", "since", "until", "source"}

// lookupTable makes a table of figures or words.
func (r *reader) lookupTable(name string, f fileTable, at grammar.Place) {
	if !r.free(name, at) {
		return
	}
	r.source(f.Source, at.Key("source"))
	t := tableReader{reader: r, defaults: f.Defaults, usualSource: f.Source, Table: formula.Table{
		Columns: f.Columns, Prompt: f.Prompt, Dearest: f.Unknown == "dearest"}}
	for i, column := range f.Columns {
		if !wordForm.MatchString(column) || slices.Contains(rowKeys, column) {
			at.Key("columns").Item(i).Add("%q cannot be used as a name", words.Clip(column))
		}
	}
	for i, e := range f.Rows {
		t.rows(e.key, e.value, at.Key("rows").Pair(i))
	}
	t.check(at)
	r.scope.Tables[name] = t.Table
	r.table.tables = append(r.table.tables, PriceTable{name, t.Table, f.Feed,
		f.Defaults})
	if f.Warn != "" {
		r.table.warns = append(r.table.warns, warning{name, f.Warn, t.Table})
	}
}

// check reports contradictions in a table.
func (t *tableReader) check(at grammar.Place) {
	require := func(column string, at grammar.Place) {
		if !slices.Contains(t.Columns, column) {
			at.Add("%q is not one of the table's columns", words.Clip(column))
		}
	}
	for _, column := range at.Key("defaults").Keys() {
		require(column, at.Key("defaults").Key(column))
	}
	for i, column := range t.Prompt {
		require(column, at.Key("prompt").Item(i))
	}
	word := func(row formula.Row) bool { return row.Word != "" }
	t.Words = slices.ContainsFunc(t.Rows, word)
	always := func(row formula.Row) bool { return row.Since+row.Until == "" }
	switch {
	case t.Dearest && !slices.ContainsFunc(t.Rows, always):
		at.Key("unknown").Add("dearest needs a row without since and until")
	case t.Words && !all(t.Rows, word):
		at.Key("rows").Add("rows must be all numbers or all words")
	case t.Words && t.Dearest:
		at.Key("unknown").Add("must be refuse in a table of words")
	}
}

func all[T any](list []T, holds func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !holds(v) })
}

// rows reads the row of a key, or its rows by date.
func (t *tableReader) rows(key string, rows fileRows, at grammar.Place) {
	first := len(t.Rows)
	for i, n := range rows {
		row := t.row(key, &n, at.Item(i))
		if len(t.Rows) > first && row.Since <= t.Rows[len(t.Rows)-1].Since {
			at.Item(i).Add("since must be later than in the row before it")
		}
		t.Rows = append(t.Rows, row)
	}
}

// row reads one row: a figure, a word, or a figure for each column.
func (t *tableReader) row(key string, n *yaml.Node, at grammar.Place) formula.Row {
	row := formula.Row{Key: strings.ToLower(key), Source: t.usualSource}
	switch {
	case len(t.Columns) > 0:
		t.columns(&row, n, at)
	case n.Kind != yaml.ScalarNode:
		at.Add("write a number or a word: the table has no columns")
	case n.Tag == "!!int" || n.Tag == "!!float":
		row.Number = figure(n, at)
	default:
		row.Word = n.Value
	}
	return row
}

// columns reads a row with a figure for each column, and its bands.
func (t *tableReader) columns(row *formula.Row, n *yaml.Node, at grammar.Place) {
	var keys struct {
		Above   map[string]map[string]yaml.Node
		Since   string
		Until   string
		Source  string
		Figures map[string]yaml.Node `yaml:",inline"`
	}
	if err := n.Decode(&keys); err != nil || n.Kind != yaml.MappingNode {
		at.Add("write a figure for each column")
		return
	}
	row.Since, row.Until, row.Source = keys.Since, keys.Until, cmp.Or(keys.Source, row.Source)
	if row.Until != "" && row.Until <= row.Since {
		at.Key("until").Add("must be later than since")
	}
	t.source(keys.Source, at.Key("source"))
	figures := t.figures(keys.Figures, at)
	row.Figures = t.complete(figures, at)
	for _, length := range at.Key("above").Keys() {
		at := at.Key("above").Key(length)
		above, err := strconv.ParseFloat(strings.ReplaceAll(length, "_", ""), 64)
		if err != nil || above <= 0 || len(t.Prompt) == 0 {
			at.Add("write a length of the prompt, and prompt in the table")
		}
		longer := maps.Clone(figures)
		maps.Copy(longer, t.figures(keys.Above[length], at))
		row.Bands = append(row.Bands, formula.Band{Above: above, Figures: t.complete(longer, at)})
	}
	slices.SortFunc(row.Bands, func(a, b formula.Band) int { return cmp.Compare(a.Above, b.Above) })
}

// figures reads the figures of a row.
func (t *tableReader) figures(row map[string]yaml.Node, at grammar.Place) map[string]float64 {
	figures := map[string]float64{}
	for column, n := range row {
		if !slices.Contains(t.Columns, column) {
			at.Key(column).Add("unknown key %q%s", words.Clip(column),
				words.DidYouMean(column, slices.Concat(t.Columns, rowKeys)))
			continue
		}
		figures[column] = figure(&n, at.Key(column))
	}
	return figures
}

// complete returns the figures of a row with the defaults of omitted columns: a figure, or another
// column's figure.
func (t *tableReader) complete(row map[string]float64, at grammar.Place) map[string]float64 {
	figures := maps.Clone(row)
	for _, column := range t.Columns {
		if _, there := row[column]; there {
			continue
		}
		usual, ok := t.defaults[column]
		switch {
		case !ok:
			at.Add("%s is missing", column)
		case usual.Tag == "!!int" || usual.Tag == "!!float":
			figures[column] = figure(&usual, at)
		default:
			if figures[column], ok = row[usual.Value]; !ok {
				at.Add("%s is missing, and so is its default %s", column, words.Clip(usual.Value))
			}
		}
	}
	return figures
}

// figure reads a number of at least 0.
func figure(n *yaml.Node, at grammar.Place) float64 {
	number, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(number >= 0 && number <= quota.MaxUnits) {
		at.Add("%s is not a number from 0 to %d", words.Clip(n.Value), int64(quota.MaxUnits))
	}
	return number
}
