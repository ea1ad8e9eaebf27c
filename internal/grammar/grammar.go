// Package grammar reads the YAML files that people write: it checks them against a JSON Schema,
// decodes them, and reports all problems at once, with their lines. It edits them in place.
package grammar

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/words"
)

// Error lists all problems of what was read.
type Error struct{ Problems []Problem }

// Problem is one problem and its place.
type Problem struct {
	Where string // file or environment variable; "" for the file that the caller passed
	Line  int    // 0 if unknown
	Text  string
}

// Error returns the problems, one per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// String returns the problem after its place.
func (p Problem) String() string {
	switch {
	case p.Line == 0 && p.Where == "":
		return p.Text
	case p.Line == 0:
		return p.Where + ": " + p.Text
	case p.Where == "":
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s", p.Where, p.Line, p.Text)
}

// MaxProblems bounds the reported problems. A person fixes the first ones first.
const MaxProblems = 100

// File is a YAML file and the problems found in it.
type File struct {
	name     string
	root     *yaml.Node
	problems []Problem
	reported map[spot]bool

	items  int                 // number of nodes that value has converted
	open   map[*yaml.Node]bool // lists and mappings around the node that value converts
	broken bool                // value met too many nodes, or one that contains itself
}

// spot identifies a value, or a missing key of a mapping.
type spot struct {
	node    *yaml.Node
	missing string
}

// Parse parses a file of one YAML document. Name is the place of its problems.
func Parse(name string, data []byte) (*File, *Problem) {
	f := &File{name: name, reported: map[spot]bool{}, open: map[*yaml.Node]bool{}}
	in := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := in.Decode(&doc)
	if err == nil {
		f.root = doc.Content[0]
		if err = in.Decode(&more); err == nil {
			return nil, &Problem{name, more.Line, "a second YAML document: write one"}
		}
	}
	if !errors.Is(err, io.EOF) { // io.EOF ends an empty file, or follows its only document
		return nil, syntaxProblem(name, data, err)
	}
	return f, nil
}

// Empty reports whether the file has no content besides comments.
func (f *File) Empty() bool { return f.root == nil || isNull(f.root) }

// Decode checks the file against the schema, if there is one, and decodes it into a struct. It adds
// problems to the file, and still decodes the valid values, so that more checks can follow. It
// returns false if the file is too broken for that.
func (f *File) Decode(schema *Schema, into any) bool {
	if f.Empty() {
		return true
	}
	if schema != nil {
		value := f.value(f.root, "")
		if f.broken {
			return false
		}
		schema.check(f, value)
	}
	if err := f.root.Decode(into); err != nil && len(f.problems) == 0 {
		f.add(f.root.Line, "%v", err)
	}
	return true
}

// Top returns the place of the whole file.
func (f *File) Top() Place { return Place{file: f, node: f.root} }

// Full reports whether there are enough problems to stop checking.
func (f *File) Full() bool { return len(f.problems) > MaxProblems }

func (f *File) add(line int, format string, args ...any) {
	f.problems = append(f.problems, Problem{f.name, line, fmt.Sprintf(format, args...)})
}

// Problems returns the problems in the order of the file, each once.
func (f *File) Problems() []Problem {
	sorted := slices.Clone(f.problems)
	slices.SortStableFunc(sorted, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	sorted = slices.Compact(sorted)
	if len(sorted) > MaxProblems {
		more := fmt.Sprintf("and more: only the first %d problems are listed", MaxProblems)
		sorted = append(sorted[:MaxProblems], Problem{Text: more})
	}
	return sorted
}

// syntaxProblem returns the parser's message with the probable cause. It rewords the message
// about anchors, which repeats text of the file that may be a key.
func syntaxProblem(name string, data []byte, err error) *Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		digits, after, _ := strings.Cut(rest, ": ")
		line, _ = strconv.Atoi(digits)
		text = after
		if strings.HasPrefix(text, "did not find expected") {
			line++ // the parser counts from 0 here, and from 1 elsewhere
		}
	}
	utf8Text := !strings.Contains(text, "UTF-8") && !strings.HasPrefix(text, "control characters")
	for i, l := range bytes.Split(data, []byte("\n")) {
		if !utf8Text && (!utf8.Valid(l) || bytes.ContainsFunc(l, isUnprintable)) {
			return &Problem{name, i + 1, text + ": save the file as plain UTF-8 text"}
		}
		if indent := l[:len(l)-len(bytes.TrimLeft(l, " \t"))]; bytes.ContainsRune(indent, '\t') {
			return &Problem{name, i + 1, "a tab: YAML is indented with spaces"}
		}
	}
	switch {
	case strings.Contains(text, "incompatible YAML"):
		text = "unsupported YAML version: delete the %YAML line"
	case strings.Contains(text, "anchor"):
		text = "an alias (*) of nothing: put the text into quotes"
	case strings.HasPrefix(text, "mapping values"):
		text += ": is the indentation right?"
	case strings.Contains(text, "did not find expected ',' or"),
		strings.Contains(text, "end of stream"),
		strings.HasPrefix(text, "could not find expected ':'"):
		text += ": is a bracket or a quote not closed, or the file cut short?"
	}
	return &Problem{name, line, text}
}

// isUnprintable reports whether r is a control character that is not white space.
func isUnprintable(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }

// DecodeEither decodes a scalar into short, and a list or mapping into long.
func DecodeEither(n *yaml.Node, short, long any) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(short)
	}
	return n.Decode(long)
}

// List is a list of values, or one value in place of a list.
type List[T any] []T

// UnmarshalYAML decodes the list or the value.
func (l *List[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode((*[]T)(l))
	}
	*l = make([]T, 1)
	return n.Decode(&(*l)[0])
}

// ParseDuration parses a duration within bounds, both included.
func ParseDuration(text string, low, high time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < low || d > high {
		return low, fmt.Errorf("%q is not a duration from %s to %gh, such as 2m", words.Clip(text), low,
			high.Hours())
	}
	return d, nil
}

// Duration is a format of durations within bounds.
func Duration(low, high time.Duration) func(string) error {
	return func(text string) error {
		_, err := ParseDuration(text, low, high)
		if _, number := strconv.Atoi(text); number == nil && err == nil {
			err = fmt.Errorf("must have a unit: write %ss", text) // YAML decodes 0 as a number
		}
		return err
	}
}
