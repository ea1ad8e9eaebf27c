// Package yamlfile reads YAML files that people write. It is strict, and reports all problems at
// once, with their lines.
package yamlfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/spell"
)

// Problem is one problem of a file.
type Problem struct {
	Line int // 0 if there is none
	Text string
}

// String returns the problem, after its line.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Text)
}

// MaxProblems bounds the reported problems; a person fixes these first.
const MaxProblems = 100

// maxItems bounds all lists and mappings together, because aliases can make a small file long.
const maxItems = 100_000

// Reader reads the nodes of one file and collects its problems. The argument what of its methods
// is the node's name for messages.
type Reader struct {
	Problems []Problem // in the order found
	items    int
}

// Add records a problem at a node.
func (r *Reader) Add(at *yaml.Node, format string, args ...any) {
	r.Problems = append(r.Problems, Problem{at.Line, fmt.Sprintf(format, args...)})
}

// Full reports whether there are enough problems to stop reading.
func (r *Reader) Full() bool { return len(r.Problems) >= MaxProblems }

// Sorted returns the problems in the order of the file, each once.
func (r *Reader) Sorted() []Problem {
	sorted := slices.Clone(r.Problems)
	slices.SortStableFunc(sorted, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	sorted = slices.Compact(sorted)
	if r.Full() {
		more := fmt.Sprintf("and perhaps more: reading ends after %d problems", MaxProblems)
		sorted = append(sorted, Problem{Text: more})
	}
	return sorted
}

// Fields maps the known keys of a mapping to the functions that read their values.
type Fields map[string]func(*yaml.Node)

// Fields reads a mapping with known keys. The required ones must be present.
func (r *Reader) Fields(n *yaml.Node, what string, known Fields, required ...string) {
	seen := make(map[string]bool)
	ok := r.pairs(n, what, 0, func(name string, key, value *yaml.Node) {
		read, ok := known[name]
		if !ok {
			meant := spell.DidYouMean(name, slices.Collect(maps.Keys(known)))
			r.Add(key, "%s: unknown key %q%s", what, spell.Clip(name), meant)
			return
		}
		seen[name] = true
		read(value)
	})
	for _, name := range required {
		if ok && !seen[name] && !r.Full() {
			r.Add(n, "%s: %s is missing", what, name)
		}
	}
}

// Each reads the pairs of a mapping. It returns false for anything else.
func (r *Reader) Each(n *yaml.Node, what string, read Pair) bool {
	return r.pairs(n, what, 1, read)
}

// Pair reads one pair of a mapping.
type Pair func(name string, key, value *yaml.Node)

// pairs is Each, where each pair counts as the given number of items.
func (r *Reader) pairs(n *yaml.Node, what string, items int, read Pair) bool {
	if n = target(n); n.Kind != yaml.MappingNode {
		r.Add(n, "%s: write key: value pairs", what)
		return false
	}
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content) && r.more(n, what, items); i += 2 {
		key, value := n.Content[i], target(n.Content[i+1])
		line, again := lines[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.Add(key, "%s: a key must be a word", what)
		case again:
			r.Add(key, "%s: %s is already set on line %d", what, spell.Clip(key.Value), line)
		default:
			lines[key.Value] = key.Line
			read(key.Value, key, value)
		}
	}
	return true
}

// List reads each item of a list.
func (r *Reader) List(n *yaml.Node, what string, item func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.Add(n, "%s: write a list", what)
		return
	}
	for _, i := range n.Content {
		if !r.more(n, what, 1) {
			return
		}
		item(target(i))
	}
}

// more counts items, and reports whether to keep reading.
func (r *Reader) more(n *yaml.Node, what string, items int) bool {
	if r.items += items; items > 0 && r.items == maxItems {
		r.Add(n, "%s: more than %d items in all lists together", what, maxItems)
	}
	return !r.Full() && r.items < maxItems
}

// target returns the node that an alias refers to.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// Text reads a word of any YAML type, because NO is a region. It returns false if there is none.
func (r *Reader) Text(n *yaml.Node, what string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		r.Add(n, "%s: write a text, not a list or key: value pairs", what)
	case n.Tag == "!!null" || strings.TrimSpace(n.Value) == "":
		r.Add(n, "%s is empty: write a text", what)
	default:
		return n.Value, true
	}
	return "", false
}

// Number reads a whole number from least to most.
func (r *Reader) Number(n *yaml.Node, what string, least, most int64) int64 {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" {
		r.Add(n, "%s: write a whole number, without quotes", what)
		return least
	}
	number, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
	if err != nil || number < least || number > most {
		r.Add(n, "%s: %s is out of range: %d to %d", what, spell.Clip(n.Value), least, most)
		return least
	}
	return number
}

// Bool reads true or false.
func (r *Reader) Bool(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		r.Add(n, "%s: write true or false", what)
	}
	return strings.EqualFold(n.Value, "true")
}

// Section reports whether a key has a value, which may be commented out completely.
func Section(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode || n.Tag != "!!null" }
