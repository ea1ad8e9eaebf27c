package grammar

import (
	"errors"
	"fmt"
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
	err   error // the first edit that cannot be made
}

// edit replaces a part of a text.
type edit struct {
	begin, end int
	text       string
}

// Edit returns an Editor for a file whose top node is a mapping. The text must be UTF-8 with lines
// that end in LF or CRLF, because YAML counts other line breaks, too.
func Edit(text string) (*Editor, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("cannot be edited: it is not UTF-8")
	}
	if strings.ContainsAny(strings.ReplaceAll(text, "\r\n", "\n"), "\r\u0085\u2028\u2029") {
		return nil, errors.New("cannot be edited: a line must end with a line feed")
	}
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

// Result returns the text with all edits, or an error if one of them cannot be made.
func (e *Editor) Result() (string, error) {
	if e.err != nil {
		return "", e.err
	}
	text := e.text
	slices.SortStableFunc(e.edits, func(a, b edit) int { return b.begin - a.begin })
	for _, e := range e.edits {
		text = text[:e.begin] + e.text + text[e.end:]
	}
	return text, nil
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

// end returns where a node ends: after its last bracket, quote or letter. If it cannot
// find the end, as in a multi-line plain scalar, Result returns an error.
func (e *Editor) end(n *yaml.Node) int {
	at := e.begin(n)
	switch {
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		if quote := e.text[at]; quote == '"' || quote == '\'' {
			return e.quoteEnd(at)
		}
	case n.Kind == yaml.ScalarNode && strings.HasPrefix(e.text[at:], n.Value):
		return at + len(n.Value)
	case n.Kind == yaml.ScalarNode:
	case n.Kind == yaml.AliasNode:
		return at + len("*") + len(n.Value)
	case InLines(n):
		return e.end(n.Content[len(n.Content)-1])
	default:
		return e.flowEnd(n, at)
	}
	e.fail(n)
	return at
}

// flowEnd returns where a node in brackets ends.
func (e *Editor) flowEnd(n *yaml.Node, at int) int {
	empty := len(n.Content) == 0
	if !empty {
		at = e.end(n.Content[len(n.Content)-1])
	}
	for ; at < len(e.text); at++ {
		switch c := e.text[at]; {
		case c == '}', c == ']':
			return at + 1
		case c == '#' && strings.ContainsRune(" \n", rune(e.text[at-1])):
			at = e.lineEnd(at) - 1
		case !empty && !strings.ContainsRune(" \t\r\n,", rune(c)):
			e.fail(n)
			return at
		}
	}
	e.fail(n)
	return at
}

func (e *Editor) fail(n *yaml.Node) {
	if e.err == nil {
		e.err = fmt.Errorf("cannot edit line %d: write each of its values on one line, without a "+
			"YAML anchor or tag", n.Line)
	}
}

func (e *Editor) quoteEnd(at int) int {
	quote := e.text[at]
	for at++; at < len(e.text); at++ {
		switch next := strings.HasPrefix(e.text[at+1:], "'"); {
		case e.text[at] == '\\' && quote == '"', e.text[at] == '\'' && quote == '\'' && next:
			at++
		case e.text[at] == quote:
			return at + 1
		}
	}
	return at
}
