package costs

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// tableReader reads one table.
type tableReader struct {
	*reader
	formula.Table
	name     string
	defaults map[string]*yaml.Node // by column
}

// Keys of a row with columns that are not columns.
var rowKeys = []string{"above", "since", "source"}

// lookupTable reads a table of figures or words.
func (r *reader) lookupTable(name string, key, n *yaml.Node) {
	if !r.free(name, key, "tables") {
		return
	}
	t := tableReader{reader: r, name: name, defaults: map[string]*yaml.Node{}}
	warn := ""
	var rows *yaml.Node
	r.fields(n, "table "+name, "table", yamlfile.Fields{
		"columns": func(n *yaml.Node) { t.Columns = t.columnNames(n) },
		"defaults": func(n *yaml.Node) {
			r.each(n, "defaults", func(column string, _, n *yaml.Node) { t.defaults[column] = n })
		},
		"prompt":  func(n *yaml.Node) { t.Prompt = r.texts(n, "prompt") },
		"unknown": func(n *yaml.Node) { t.unknown(n) },
		"rows":    func(n *yaml.Node) { rows = n },
		"warn": func(n *yaml.Node) {
			// the facts are read after the tables, which they may use
			warn = r.text(n, "warn")
			r.warned = append(r.warned, n)
		},
		"source": func(n *yaml.Node) { r.sourceOf(n) },
		"note":   func(n *yaml.Node) { r.text(n, "note") },
	}, "rows", "source")
	if rows != nil {
		r.each(rows, "rows", t.rows)
	}
	t.check(n)
	r.scope.Tables[name] = t.Table
	if warn != "" {
		r.table.warns = append(r.table.warns, warning{name, warn, t.Table})
	}
}

// columnNames reads the names of the columns.
func (t *tableReader) columnNames(n *yaml.Node) []string {
	names := t.texts(n, "columns")
	for _, name := range names {
		if !wordForm.MatchString(name) || slices.Contains(rowKeys, name) {
			t.Add(n, "columns: %q cannot be used as a name", spell.Clip(name))
		}
	}
	return names
}

// unknown reads how to treat a key without a row.
func (t *tableReader) unknown(n *yaml.Node) {
	switch t.text(n, "unknown") {
	case "refuse":
	case "dearest":
		t.Dearest = true
	default:
		t.Add(n, "unknown: must be refuse or dearest")
	}
}

// check reports contradictions in a table.
func (t *tableReader) check(n *yaml.Node) {
	require := func(what, column string) {
		if !slices.Contains(t.Columns, column) {
			t.Add(n, "table %s: %s: %q is not one of its columns", t.name, what, spell.Clip(column))
		}
	}
	for column := range t.defaults {
		require("defaults", column)
	}
	for _, column := range t.Prompt {
		require("prompt", column)
	}
	word := func(row formula.Row) bool { return row.Word != "" }
	t.Words = slices.ContainsFunc(t.Rows, word)
	always := func(row formula.Row) bool { return row.Since == "" }
	switch {
	case t.Dearest && !slices.ContainsFunc(t.Rows, always):
		t.Add(n, "table %s: unknown: dearest needs a row without since", t.name)
	case t.Words && !all(t.Rows, word):
		t.Add(n, "table %s: rows must be all numbers or all words", t.name)
	case t.Words && t.Dearest:
		t.Add(n, "table %s: unknown: must be refuse in a table of words", t.name)
	}
}

func all[T any](list []T, holds func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !holds(v) })
}

// rows reads the row of a key, or its list of rows by date.
func (t *tableReader) rows(key string, _, n *yaml.Node) {
	first := len(t.Rows)
	if n.Kind != yaml.SequenceNode {
		t.Rows = append(t.Rows, t.row(key, n))
		return
	}
	t.List(n, "row "+spell.Clip(key), func(n *yaml.Node) {
		row := t.row(key, n)
		if len(t.Rows) > first && row.Since <= t.Rows[len(t.Rows)-1].Since {
			t.Add(n, "row %s: since: must be later than in the row before it", spell.Clip(key))
		}
		t.Rows = append(t.Rows, row)
	})
}

// row reads one row.
func (t *tableReader) row(key string, n *yaml.Node) formula.Row {
	row := formula.Row{Key: strings.ToLower(key)}
	what := "row " + spell.Clip(key)
	switch {
	case len(t.Columns) > 0:
		t.columns(&row, what, n)
	case n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float"):
		row.Number = t.figure(n, what)
	default:
		row.Word = t.text(n, what)
	}
	return row
}

// columns reads a row with a figure for each column, and its bands.
func (t *tableReader) columns(row *formula.Row, what string, n *yaml.Node) {
	figures := map[string]float64{}
	var bands *yaml.Node
	known := t.figures(figures, what)
	known["above"] = func(n *yaml.Node) { bands = n }
	known["since"] = func(n *yaml.Node) { row.Since = t.date(n, "since") }
	known["source"] = func(n *yaml.Node) { t.sourceOf(n) }
	t.Fields(n, what, known)
	row.Figures = t.complete(figures, what, n)
	if bands == nil {
		return
	}
	t.each(bands, "above", func(length string, key, n *yaml.Node) {
		above, err := strconv.ParseFloat(strings.ReplaceAll(length, "_", ""), 64)
		if err != nil || above <= 0 || len(t.Prompt) == 0 {
			t.Add(key, "%s: above: write a length of the prompt, and prompt in the table", what)
		}
		figures := maps.Clone(figures)
		t.Fields(n, what, t.figures(figures, what))
		row.Bands = append(row.Bands,
			formula.Band{Above: above, Figures: t.complete(figures, what, n)})
	})
	slices.SortFunc(row.Bands, func(a, b formula.Band) int { return cmp.Compare(a.Above, b.Above) })
}

// figures returns the readers of the columns of a row.
func (t *tableReader) figures(into map[string]float64, what string) yamlfile.Fields {
	known := yamlfile.Fields{}
	for _, column := range t.Columns {
		known[column] = func(n *yaml.Node) { into[column] = t.figure(n, what+": "+column) }
	}
	return known
}

// complete returns the figures of a row, with the defaults of the columns that it leaves out: a
// figure, or that of another column.
func (t *tableReader) complete(row map[string]float64, what string,
	n *yaml.Node) map[string]float64 {
	figures := maps.Clone(row)
	for _, column := range t.Columns {
		usual, there := t.defaults[column], false
		if _, there = row[column]; there {
			continue
		}
		switch {
		case usual == nil:
			t.Add(n, "%s: %s is missing", what, column)
		case usual.Tag == "!!int" || usual.Tag == "!!float":
			figures[column] = t.figure(usual, "defaults: "+column)
		default:
			of := t.text(usual, "defaults: "+column)
			if figures[column], there = row[of]; !there {
				t.Add(n, "%s: %s is missing, and so is its default %s", what, column,
					spell.Clip(of))
			}
		}
	}
	return figures
}

// figure reads a number of at least 0.
func (t *tableReader) figure(n *yaml.Node, what string) float64 {
	number, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(number >= 0 && number <= quota.MaxUnits) {
		t.Add(n, "%s: %s is not a number from 0 to %d", what, spell.Clip(n.Value),
			int64(quota.MaxUnits))
	}
	return number
}
