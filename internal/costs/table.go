package costs

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
)

// PriceTable holds figures or words by a key, such as the prices of a token by model.
type PriceTable struct {
	Name    string
	Columns []string // names of the figures, the main price first; empty for one figure
	Prompt  []string // columns whose amounts add up to the length of the prompt
	Rows    []Row    // rows of one key are in order of their dates
	Words   bool     // the rows hold words
	Dearest bool     // a key without a row counts as the dearest row
	Feed    Feed

	warn     string            // fact whose unlisted values are reported; or ""
	defaults map[string]figure // by column; a word is another column
}

// Feed is the data set that the rows of a table come from.
type Feed struct {
	URL       string
	Format    string
	Providers []string // the upstream's names in feeds; default its name
}

// Row holds the values of a key. A * at the end of the key matches any ending.
type Row struct {
	Key     string // in lower case
	Number  float64
	Word    string
	Figures map[string]float64 // by column, each of them
	Bands   []Band             // from the shortest prompt to the longest
	Since   string             // first day of validity: 2026-12-01; "" for always
	Until   string             // first day after it; "" for none
	Source  string             // name of the figures' source
}

// Band replaces the figures of a row for prompts longer than Above.
type Band struct {
	Above   float64
	Figures map[string]float64
}

// rowError reports a key for which a table has no row.
type rowError struct{ Table, Key string }

// Error names the table and the key.
func (e *rowError) Error() string {
	return fmt.Sprintf("the table %s has no row for %.80q", e.Table, e.Key)
}

// Find returns the row of a key on a day, ignoring case: the row of that name, of the name without
// its date, or of what follows the last slash; else the longest row with a * that the key begins
// with; else the dearest, if the table allows that. listed is false if the row may be for something
// else: more than a date follows the row's name, or no name is left.
func (t PriceTable) Find(key, day string) (row Row, listed, ok bool) {
	key = strings.ToLower(key)
	tail := key[strings.LastIndexByte(key, '/')+1:]
	for _, name := range []string{key, undated(key), tail, undated(tail)} {
		if row, ok = t.rowOf(name, day); ok {
			return row, true, true
		}
	}
	for _, name := range []string{key, tail} {
		begins := func(r, than *Row) bool {
			head, open := strings.CutSuffix(r.Key, "*")
			return open && strings.HasPrefix(name, head) &&
				(than == nil || len(r.Key) >= len(than.Key))
		}
		if r := t.best(day, begins); r != nil && (!ok || len(r.Key) > len(row.Key)) {
			head := len(r.Key) - len("*")
			row, ok, listed = *r, true, head > 0 && len(undated(name)) <= head
		}
	}
	if ok || !t.Dearest {
		return row, listed, ok
	}
	dearer := func(r, than *Row) bool { // compares the figures column by column
		if than == nil {
			return true
		}
		for _, column := range t.Columns {
			if order := cmp.Compare(r.Figures[column], than.Figures[column]); order != 0 {
				return order > 0
			}
		}
		return r.Number >= than.Number
	}
	return *t.best(day, dearer), false, true
}

// rowOf returns the row of exactly that key on a day.
func (t PriceTable) rowOf(key, day string) (row Row, ok bool) {
	if r := t.best(day, func(r, _ *Row) bool { return r.Key == key }); r != nil {
		return *r, true
	}
	return row, false
}

// best returns the best of the rows valid on a day, or nil. better compares a row with the best so
// far.
func (t PriceTable) best(day string, better func(r, than *Row) bool) (best *Row) {
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Counts(day) && better(r, best) {
			best = r
		}
	}
	return best
}

// Counts reports whether the row is valid on a day such as 2026-12-01.
func (r Row) Counts(day string) bool { return r.Since <= day && (r.Until == "" || day < r.Until) }

// Usual returns the default figure of a column that a row omits, if it has one.
func (t PriceTable) Usual(column string, row map[string]float64) (number float64, ok bool) {
	usual, ok := t.defaults[column]
	if number = usual.number; ok && usual.word != "" {
		number, ok = row[usual.word]
	}
	return number, ok
}

// On returns the rows that are valid on a day.
func (t PriceTable) On(day string) []Row {
	return slices.DeleteFunc(slices.Clone(t.Rows), func(r Row) bool {
		valid, ok := t.rowOf(r.Key, day)
		return !ok || valid.Since != r.Since
	})
}

// versionForm matches the end of a name that distinguishes versions.
var versionForm = regexp.MustCompile(
	`[-_@:](latest|20\d\d-\d\d-\d\d|20\d{6}|(0[1-9]|1[0-2])([0-2]\d|3[01]))$`)

// undated returns a name without the date or "latest" at its end.
func undated(name string) string { return versionForm.ReplaceAllString(name, "") }

// cost returns the sum of amounts by column, each at its figure.
func (t PriceTable) cost(row Row, amounts map[string]any) (sum float64, err error) {
	prompt, counts := 0.0, map[string]float64{}
	for column, amount := range amounts {
		switch n := amount.(type) {
		case float64:
			counts[column] = n
		case int:
			counts[column] = float64(n)
		default:
			return 0, fmt.Errorf("%s is not a number", column)
		}
		if counts[column] < 0 {
			return 0, fmt.Errorf("%s is negative", column)
		}
		if slices.Contains(t.Prompt, column) {
			prompt += counts[column]
		}
	}
	figures := row.Figures
	for _, band := range row.Bands {
		if prompt > band.Above {
			figures = band.Figures
		}
	}
	for _, column := range t.Columns {
		sum += counts[column] * figures[column]
	}
	return sum, nil
}

// value returns the value of a table call: the row's one figure or word, a column's figure, or the
// cost of amounts.
func (t PriceTable) value(row Row, params []any) (any, error) {
	switch {
	case t.Words:
		return row.Word, nil
	case len(t.Columns) == 0:
		return row.Number, nil
	}
	switch of := params[1].(type) {
	case map[string]any:
		return t.cost(row, of)
	case string:
		if figure, ok := row.Figures[of]; ok {
			return figure, nil
		}
		return nil, fmt.Errorf("no column %.80q", of)
	}
	return nil, errors.New("not a column, and no amounts by column")
}

// function makes the table a function of the expressions. Its last argument is the day, which the
// checker adds.
func (t PriceTable) function(name string) expr.Option {
	find := func(params ...any) (any, error) {
		key, ok := params[0].(string)
		if !ok {
			return nil, errors.New("the argument of " + name + " is not a text")
		}
		day, _ := params[len(params)-1].(string)
		row, _, ok := t.Find(key, day)
		if !ok {
			return nil, &rowError{name, key}
		}
		return t.value(row, params)
	}
	switch {
	case t.Words:
		return expr.Function(name, find, new(func(any, string) string))
	case len(t.Columns) > 0:
		return expr.Function(name, find, new(func(any, any, string) float64))
	}
	return expr.Function(name, find, new(func(any, string) float64))
}

// columns refuses columns in an expression that the table lacks.
func (c *checker) columns(name string, node ast.Node) {
	var names []string
	switch n := node.(type) {
	case *ast.StringNode:
		names = append(names, n.Value)
	case *ast.MapNode:
		for _, pair := range n.Pairs {
			if key, ok := pair.(*ast.PairNode).Key.(*ast.StringNode); ok {
				names = append(names, key.Value)
			}
		}
	}
	columns := c.scope.Tables[name].Columns
	for _, column := range names {
		if !slices.Contains(columns, column) {
			c.refuse("the table %s has no column %q: it has %s", name, column,
				strings.Join(columns, ", "))
		}
	}
}
