package grammar

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Editor replaces parts of the text of a YAML file, and keeps every other byte.
type Editor struct {
	Top *yaml.Node

	text  string
	lines []int // offset of the start of each line
	edits []edit
}

// edit replaces a part of a text.
type edit struct {
	begin, end int
	text       string
}

// Edit returns an Editor for a file whose top node is a mapping.
func Edit(text string) (*Editor, error) {
	e := &Editor{text: text, Top: &yaml.Node{}, lines: []int{0}}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) > 0 {
		e.Top = doc.Content[0]
	}
	for i, c := range []byte(text) {
		if c == '\n' {
			e.lines = append(e.lines, i+1)
		}
	}
	return e, nil
}

// String returns the text with all edits.
func (e *Editor) String() string {
	text := e.text
	slices.SortStableFunc(e.edits, func(a, b edit) int { return b.begin - a.begin })
	for _, e := range e.edits {
		text = text[:e.begin] + e.text + text[e.end:]
	}
	return text
}

// Text returns the text of a node.
func (e *Editor) Text(n *yaml.Node) string { return e.text[e.begin(n):e.end(n)] }

// Replace replaces the text of a node.
func (e *Editor) Replace(n *yaml.Node, text string) {
	e.edits = append(e.edits, edit{e.begin(n), e.end(n), text})
}

// Delete deletes the lines of a key and its value.
func (e *Editor) Delete(key, value *yaml.Node) {
	end := min(e.lineEnd(e.end(value))+1, len(e.text))
	e.edits = append(e.edits, edit{e.lines[key.Line-1], end, ""})
}

// Append inserts lines after the last line of a mapping or list, indented like its first item.
func (e *Editor) Append(n *yaml.Node, lines ...string) {
	end := e.lineEnd(e.end(n))
	indent := "\n" + strings.Repeat(" ", n.Column-1)
	e.edits = append(e.edits, edit{end, end, indent + strings.Join(lines, indent)})
}

// Child returns the value of a key in a mapping, without regard to case, or nil.
func Child(n *yaml.Node, key string) *yaml.Node {
	_, value := Pair(n, key)
	return value
}

// Pair returns a key in a mapping and its value, without regard to case, or nil.
func Pair(n *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if strings.EqualFold(n.Content[i].Value, name) {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// InLines reports whether each item of a mapping or list has its own line or lines.
func InLines(n *yaml.Node) bool {
	return n != nil && n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0
}

// begin returns where a node begins.
func (e *Editor) begin(n *yaml.Node) int {
	at := e.lines[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(e.text[at:])
		at += size
	}
	return at
}

func (e *Editor) lineEnd(at int) int {
	if i := strings.IndexByte(e.text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(e.text)
}

// end returns where a node ends: after its last bracket, quote or letter.
func (e *Editor) end(n *yaml.Node) int {
	at := e.begin(n)
	switch {
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return e.quoteEnd(at)
	case n.Kind == yaml.ScalarNode:
		return at + len(n.Value)
	case InLines(n):
		return e.end(n.Content[len(n.Content)-1])
	}
	depth := 0
	for ; at < len(e.text); at++ {
		switch e.text[at] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		case '"', '\'':
			at = e.quoteEnd(at) - 1
		case '#':
			if at > 0 && (e.text[at-1] == ' ' || e.text[at-1] == '\n') {
				at = e.lineEnd(at) - 1
			}
		}
	}
	return at
}

func (e *Editor) quoteEnd(at int) int {
	quote := e.text[at]
	for at++; at < len(e.text) && e.text[at] != quote; at++ {
		if e.text[at] == '\\' && quote == '"' {
			at++
		}
	}
	return at + 1
}
