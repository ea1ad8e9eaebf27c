package feed

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs"
)

// edit replaces a part of a text.
type edit struct {
	begin, end int
	text       string
}

// file is the text of a price list.
type file struct {
	text  string
	lines []int // offsets of their begins
	top   *yaml.Node
	edits []edit
}

// Rewrite returns the text of a price list with the differences in the rows of a table. Every other
// byte stays. The source of the changed rows gets the day of the feed.
func Rewrite(text string, table costs.PriceTable, all []Difference, source, title, day string) (string, error) {
	f := file{text: text, lines: []int{0}}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		return "", errors.Join(err, errors.New("it is no price list"))
	}
	f.top = doc.Content[0]
	for i, c := range []byte(text) {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	rows := child(child(child(f.top, "tables"), table.Name), "rows")
	if rows == nil || rows.Style&yaml.FlowStyle != 0 || len(rows.Content) == 0 {
		return "", fmt.Errorf("the rows of %s must stand on lines of their own", table.Name)
	}
	byRow := map[string][]Difference{}
	for _, d := range all {
		byRow[d.Row] = append(byRow[d.Row], d)
	}
	var added strings.Builder
	indent := strings.Repeat(" ", rows.Content[0].Column-1)
	for _, d := range all {
		of := byRow[d.Row]
		if of == nil {
			continue // written with the first difference of the row
		}
		delete(byRow, d.Row)
		key, value := pair(rows, d.Row)
		switch {
		case of[0].After == nil:
			f.edits = append(f.edits, edit{f.lines[key.Line-1],
				min(f.lineEnd(f.end(value))+1, len(f.text)), ""})
		case value == nil:
			fmt.Fprintf(&added, "\n%s%s: %s", indent, keyText(d.Row), f.rows(table, nil, of))
		default:
			f.edits = append(f.edits, edit{f.offset(value), f.end(value), f.rows(table, value, of)})
		}
	}
	if added.Len() > 0 {
		end := f.lineEnd(f.end(rows.Content[len(rows.Content)-1]))
		f.edits = append(f.edits, edit{end, end, added.String()})
	}
	if err := f.date(source, title, day); err != nil {
		return "", err
	}
	slices.SortStableFunc(f.edits, func(a, b edit) int { return b.begin - a.begin })
	for _, e := range f.edits {
		text = text[:e.begin] + e.text + text[e.end:]
	}
	return text, nil
}

// rows writes the rows of one key, by their dates, with the differences.
func (f *file) rows(table costs.PriceTable, value *yaml.Node, all []Difference) string {
	before := []*yaml.Node{value}
	if value == nil {
		before = nil
	} else if value.Kind == yaml.SequenceNode {
		before = value.Content
	}
	var texts []string
	for _, n := range before {
		texts = append(texts, f.text[f.offset(n):f.end(n)])
	}
	slices.SortStableFunc(all, func(a, b Difference) int { return strings.Compare(a.Since, b.Since) })
	for _, d := range all {
		i := slices.IndexFunc(before, func(n *yaml.Node) bool {
			since := child(n, "since")
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

// date sets the day of the feed's source, or adds the source to the list.
func (f *file) date(source, title, day string) error {
	sources := child(f.top, "sources")
	if sources == nil || sources.Style&yaml.FlowStyle != 0 {
		return errors.New("its sources must stand on lines of their own")
	}
	if date := child(child(sources, source), "date"); date != nil {
		f.edits = append(f.edits, edit{f.offset(date), f.end(date), day})
		return nil
	}
	end := f.lineEnd(f.end(sources.Content[len(sources.Content)-1]))
	indent := strings.Repeat(" ", sources.Content[0].Column-1)
	f.edits = append(f.edits, edit{end, end, fmt.Sprintf("\n%s%s: {status: secondary, date: %s, text: %q}",
		indent, keyText(source), day, title)})
	return nil
}

func child(n *yaml.Node, key string) *yaml.Node {
	_, value := pair(n, key)
	return value
}

// pair returns the key and its value, without regard to case.
func pair(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if strings.EqualFold(n.Content[i].Value, name) {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// offset returns where a node begins.
func (f *file) offset(n *yaml.Node) int {
	at := f.lines[n.Line-1]
	for range n.Column - 1 {
		_, size := []rune(f.text[at : at+1])[0], 1
		for at+size < len(f.text) && f.text[at+size]&0xc0 == 0x80 {
			size++
		}
		at += size
	}
	return at
}

func (f *file) lineEnd(at int) int {
	if i := strings.IndexByte(f.text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(f.text)
}

// end returns where a node ends: behind its last bracket or quote, or its last letter.
func (f *file) end(n *yaml.Node) int {
	at := f.offset(n)
	switch {
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return f.quoteEnd(at)
	case n.Kind == yaml.ScalarNode:
		return at + len(n.Value)
	case n.Style&yaml.FlowStyle == 0:
		return f.end(n.Content[len(n.Content)-1])
	}
	depth := 0
	for ; at < len(f.text); at++ {
		switch f.text[at] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		case '"', '\'':
			at = f.quoteEnd(at) - 1
		case '#':
			if at > 0 && (f.text[at-1] == ' ' || f.text[at-1] == '\n') {
				at = f.lineEnd(at) - 1
			}
		}
	}
	return at
}

func (f *file) quoteEnd(at int) int {
	quote := f.text[at]
	for at++; at < len(f.text) && f.text[at] != quote; at++ {
		if f.text[at] == '\\' && quote == '"' {
			at++
		}
	}
	return at + 1
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
func (d Difference) text(table costs.PriceTable, before *yaml.Node) string {
	has := func(column string, figures map[string]float64) bool {
		usual, ok := table.Usual(column, figures)
		return child(before, column) != nil || !ok || usual != figures[column]
	}
	parts := columns(table, d.After, has)
	for _, key := range []string{"since", "until"} {
		if value := child(before, key); value != nil {
			parts = append(parts, key+": "+value.Value)
		} else if key == "since" && d.Since != "" {
			parts = append(parts, "since: "+d.Since)
		}
	}
	parts = append(parts, "source: "+keyText(d.Source))
	var bands []string
	for _, above := range slices.Sorted(maps.Keys(d.Bands)) {
		differs := func(column string, figures map[string]float64) bool {
			return figures[column] != d.After[column]
		}
		bands = append(bands, number(above)+": {"+
			strings.Join(columns(table, d.Bands[above], differs), ", ")+"}")
	}
	if len(bands) > 0 {
		parts = append(parts, "above: {"+strings.Join(bands, ", ")+"}")
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func columns(table costs.PriceTable, figures map[string]float64,
	has func(string, map[string]float64) bool) (parts []string) {
	for _, column := range table.Columns {
		if has(column, figures) {
			parts = append(parts, column+": "+number(figures[column]))
		}
	}
	return parts
}

func number(figure float64) string { return strconv.FormatFloat(figure, 'f', -1, 64) }
