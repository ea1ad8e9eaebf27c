package costs

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// tableReader makes one table.
type tableReader struct {
	*reader
	PriceTable
}

// rowKeys are the keys of a row with columns that are not columns.
var rowKeys = []string{"above", "since", "until", "source"}

func (r *reader) lookupTable(name string, f fileTable, at grammar.Place) {
	if !r.free(name, at) {
		return
	}
	r.source(f.Source, at.Key("source"))
	t := tableReader{r, PriceTable{Name: name, Columns: f.Columns, Prompt: f.Prompt,
		Dearest: f.Unknown == "dearest", Feed: f.Feed, warn: f.Warn, defaults: f.Defaults}}
	for i, column := range f.Columns {
		if !wordForm.MatchString(column) || slices.Contains(rowKeys, column) {
			at.Key("columns").Item(i).Add("%q cannot be used as a name", words.Clip(column))
		}
	}
	keys := map[string]bool{}
	for i, e := range f.Rows {
		key, at := strings.ToLower(e.key), at.Key("rows").Pair(i)
		if keys[key] {
			at.Add("row %s appears twice: case is ignored", words.Clip(key))
		}
		keys[key] = true
		t.rows(key, f.Source, e.value, at)
	}
	t.check(at)
	r.scope.Tables[name] = t.PriceTable
	r.table.tables = append(r.table.tables, t.PriceTable)
}

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
	t.Words = slices.ContainsFunc(t.Rows, func(row Row) bool { return row.Word != "" })
	number := func(row Row) bool { return row.Word == "" }
	always := func(row Row) bool { return row.Since+row.Until == "" }
	switch {
	case t.Dearest && !slices.ContainsFunc(t.Rows, always):
		at.Key("unknown").Add("dearest needs a row without since and until")
	case t.Words && slices.ContainsFunc(t.Rows, number):
		at.Key("rows").Add("rows must be all numbers or all words")
	case t.Words && t.Dearest:
		at.Key("unknown").Add("must be refuse in a table of words")
	}
}

// rows reads the row of a key, or its rows by date.
func (t *tableReader) rows(key, source string, rows []fileRow, at grammar.Place) {
	since := ""
	for i, f := range rows {
		at := at.Item(i)
		row := Row{Key: key, Since: f.Since, Until: f.Until,
			Source: cmp.Or(f.Source, source)}
		switch {
		case len(t.Columns) > 0 && f.figure == nil:
			t.columns(&row, f, at)
		case len(t.Columns) > 0:
			at.Add("write a figure for each column")
		case f.figure == nil:
			at.Add("write a number or a word: the table has no columns")
		default:
			row.Number, row.Word = f.figure.number, f.figure.word
		}
		if i > 0 && f.Since <= since {
			at.Add("since must be later than in the row before it")
		}
		if since = f.Since; f.Until != "" && f.Until <= since {
			at.Key("until").Add("must be later than since")
		}
		t.source(f.Source, at.Key("source"))
		t.Rows = append(t.Rows, row)
	}
}

// columns reads a row with a figure for each column, and its bands.
func (t *tableReader) columns(row *Row, f fileRow, at grammar.Place) {
	row.Figures = t.complete(f.Figures, at)
	for _, length := range at.Key("above").Keys() {
		at := at.Key("above").Key(length)
		above, err := strconv.ParseFloat(strings.ReplaceAll(length, "_", ""), 64)
		if err != nil || !(above > 0 && above <= quota.MaxUnits) || len(t.Prompt) == 0 {
			at.Add("write a length of the prompt, and prompt in the table")
		}
		if slices.ContainsFunc(row.Bands, func(b Band) bool { return b.Above == above }) {
			at.Add("length %s appears twice", words.Clip(length))
		}
		longer := map[string]float64{}
		maps.Copy(longer, f.Figures)
		maps.Copy(longer, f.Above[length])
		row.Bands = append(row.Bands, Band{Above: above, Figures: t.complete(longer, at)})
	}
	slices.SortFunc(row.Bands, func(a, b Band) int { return cmp.Compare(a.Above, b.Above) })
}

// complete returns the figures of a row with the defaults of omitted columns.
func (t *tableReader) complete(row map[string]float64, at grammar.Place) map[string]float64 {
	figures := map[string]float64{}
	for _, column := range sorted(row) {
		if !slices.Contains(t.Columns, column) {
			at.Key(column).Add("unknown key %q%s", words.Clip(column),
				words.DidYouMean(column, slices.Concat(t.Columns, rowKeys)))
			delete(row, column)
		}
	}
	for _, column := range t.Columns {
		number, ok := row[column]
		if !ok {
			number, ok = t.Usual(column, row)
		}
		if usual := t.defaults[column].word; !ok && usual != "" {
			at.Add("%s is missing, and so is its default %s", column, words.Clip(usual))
		} else if !ok {
			at.Add("%s is missing", column)
		}
		figures[column] = number
	}
	return figures
}
