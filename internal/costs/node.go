package costs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/quota"
)

// document is the top of the one YAML document in data.
func document(data []byte) (*yaml.Node, error) {
	in := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := in.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("line 1: the price list is empty")
	case err != nil:
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := in.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("the price list holds more than one YAML document")
	}
	return doc.Content[0], nil
}

// problems gathers what is wrong, by line.
type problems []problem

type problem struct {
	line int
	text string
}

// maxProblems are reported; a person mends these first.
const maxProblems = 100

func (p problems) full() bool { return len(p) >= maxProblems }

func (p *problems) add(at *yaml.Node, format string, args ...any) {
	*p = append(*p, problem{at.Line, fmt.Sprintf(format, args...)})
}

// err is nil, or one line for each problem in the order of the file.
func (p problems) err() error {
	slices.SortStableFunc(p, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for _, q := range slices.Compact(p) {
		errs = append(errs, fmt.Errorf("line %d: %s", q.line, q.text))
	}
	if p.full() {
		errs = append(errs, fmt.Errorf("and perhaps more: reading ends after %d problems", maxProblems))
	}
	return errors.Join(errs...)
}

// fields says what reads the value of each key of a mapping.
type fields map[string]func(*yaml.Node)

// fields reads a mapping with known keys. All of them must be there but the optional ones.
func (r *reader) fields(n *yaml.Node, what string, known fields, optional ...string) {
	missing := maps.Clone(known)
	r.pairs(n, what, func(name string, key, value *yaml.Node) {
		read, ok := known[name]
		if !ok {
			r.add(key, "%s has no key %q%s", what, name, didYouMean(name, known))
			return
		}
		delete(missing, name)
		read(value)
	})
	for _, name := range sorted(missing) {
		if !slices.Contains(optional, name) && !r.full() {
			r.add(n, "%s has no %s", what, name)
		}
	}
}

// each reads a mapping that holds at least one pair.
func (r *reader) each(n *yaml.Node, what string, read pair) {
	if n != nil && n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		r.add(n, "%s: none is given", what)
	}
	r.pairs(n, what, read)
}

// pair reads one pair of a mapping.
type pair func(name string, key, value *yaml.Node)

// pairs reads a mapping, in which a repeated key is a problem.
func (r *reader) pairs(n *yaml.Node, what string, read pair) {
	if n == nil {
		return // missing, and reported as such
	}
	if n.Kind != yaml.MappingNode {
		r.add(n, "%s: write key: value pairs", what)
		return
	}
	seen := map[string]int{}
	for i := 0; i < len(n.Content) && !r.full(); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			r.add(key, "%s: a key is a word", what)
			continue
		}
		if line, again := seen[key.Value]; again {
			r.add(key, "%s: %s stands already in line %d", what, key.Value, line)
			continue
		}
		seen[key.Value] = key.Line
		read(key.Value, key, value)
	}
}

func (r *reader) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || strings.TrimSpace(n.Value) == "" {
		r.add(n, "write a text here")
	}
	return n.Value
}

func (r *reader) texts(n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.add(n, "write a list of texts here: [a, b]")
		return nil
	}
	var all []string
	for _, item := range n.Content {
		all = append(all, r.text(item))
	}
	return all
}

func (r *reader) flag(n *yaml.Node) bool {
	if n.Tag != "!!bool" {
		r.add(n, "%q: write true or false", n.Value)
	}
	return n.Value == "true"
}

// units reads a whole number of units, least or more.
func (r *reader) units(n *yaml.Node, least int64) int64 {
	u, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Tag != "!!int" || err != nil || u < least || u > quota.MaxUnits {
		r.add(n, "%q is not a number of units from %d to %d", n.Value, least, int64(quota.MaxUnits))
	}
	return u
}

var dateForm = regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?$`)

func (r *reader) date(n *yaml.Node) string {
	if !dateForm.MatchString(n.Value) {
		r.add(n, "%q is not a day such as 2026-06-01 or a month such as 2026-11", n.Value)
	}
	return n.Value
}
