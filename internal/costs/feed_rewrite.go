package costs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/grammar"
)

// RewriteTable returns the text of a price list with the differences in the rows of a table. Every
// other byte stays. The source of the changed rows gets the day of the feed.
func RewriteTable(text string, table PriceTable, all []FeedDifference, source, day string) (
	string, error) {
	f, err := grammar.Edit(text)
	if err != nil {
		return "", err
	}
	rows := grammar.Child(grammar.Child(grammar.Child(f.Top, "tables"), table.Name), "rows")
	sources := grammar.Child(f.Top, "sources")
	if !grammar.InLines(rows) || !grammar.InLines(sources) {
		return "", fmt.Errorf("the rows of %s and the sources must each be on their own line",
			table.Name)
	}
	byRow := map[string][]FeedDifference{}
	for _, d := range all {
		byRow[d.Row] = append(byRow[d.Row], d)
	}
	var added []string
	for _, d := range all {
		differences := byRow[d.Row]
		if differences == nil {
			continue // written with the first difference of the row
		}
		delete(byRow, d.Row)
		switch key, value := grammar.Pair(rows, d.Row); {
		case differences[0].After == nil:
			f.Delete(key, value)
		case value == nil:
			added = append(added, keyText(d.Row)+": "+rowsText(f, table, nil, differences))
		default:
			f.Replace(value, rowsText(f, table, value, differences))
		}
	}
	if len(added) > 0 {
		f.Append(rows, added...)
	}
	if date := grammar.Child(grammar.Child(sources, source), "date"); date != nil {
		f.Replace(date, day)
	} else {
		f.Append(sources, fmt.Sprintf("%s: {status: secondary, date: %s, text: %q}",
			keyText(source), day, "the prices of the data set "+source))
	}
	return f.Result()
}

// rowsText writes the rows of one key, ordered by date, with the differences applied.
func rowsText(f *grammar.Editor, table PriceTable, value *yaml.Node, all []FeedDifference) string {
	before := []*yaml.Node{value}
	if value == nil {
		before = nil
	} else if value.Kind == yaml.SequenceNode {
		before = value.Content
	}
	var texts []string
	for _, n := range before {
		texts = append(texts, f.Text(n))
	}
	slices.SortStableFunc(all, func(a, b FeedDifference) int {
		return strings.Compare(a.Since, b.Since)
	})
	for _, d := range all {
		i := slices.IndexFunc(before, func(n *yaml.Node) bool {
			since := grammar.Child(n, "since")
			return !d.append && (since == nil && d.replaced == "" || since != nil && since.Value == d.replaced)
		})
		if i >= 0 {
			texts[i] = d.text(table, before[i])
		} else {
			texts = append(texts, d.text(table, nil))
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

var plainKey = regexp.MustCompile(`^[a-z][a-z0-9._/-]*$`)

func keyText(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return strconv.Quote(key)
}

// text writes the figures of a row as a flow mapping. Of the columns with defaults it has those that
// the row had, or that differ from the default.
func (d FeedDifference) text(table PriceTable, before *yaml.Node) string {
	has := func(column string) bool {
		usual, ok := table.Usual(column, d.After)
		return grammar.Child(before, column) != nil || !ok || usual != d.After[column]
	}
	parts := columns(table, d.After, has)
	for _, key := range []string{"since", "until"} {
		if value := grammar.Child(before, key); value != nil {
			parts = append(parts, key+": "+value.Value)
		} else if key == "since" && d.Since != "" {
			parts = append(parts, "since: "+d.Since)
		}
	}
	parts = append(parts, "source: "+keyText(d.Source))
	var bands []string
	for _, above := range slices.Sorted(maps.Keys(d.Bands)) {
		differs := func(column string) bool { return d.Bands[above][column] != d.After[column] }
		bands = append(bands, number(above)+": {"+
			strings.Join(columns(table, d.Bands[above], differs), ", ")+"}")
	}
	if len(bands) > 0 {
		parts = append(parts, "above: {"+strings.Join(bands, ", ")+"}")
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func columns(table PriceTable, figures figures, has func(string) bool) (parts []string) {
	for _, column := range table.Columns {
		if has(column) {
			parts = append(parts, column+": "+number(figures[column]))
		}
	}
	return parts
}

func number(figure float64) string { return strconv.FormatFloat(figure, 'f', -1, 64) }
