package costs

import (
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"

	"quotabudget"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// List is the price lists of several upstreams. It is immutable and may be shared.
type List struct {
	tables map[string]func() *Table
	usual  string
	files  []string
}

// Upstream returns the table of an upstream in its chosen profile; "" is the default upstream.
func (l *List) Upstream(name string) (*Table, error) {
	if name == "" {
		name = l.usual
	}
	t, ok := l.tables[name]
	if !ok {
		return nil, fmt.Errorf("no upstream %q in the price list%s: it has %s", words.Clip(name),
			didYouMean(name, l.tables), strings.Join(l.Upstreams(), ", "))
	}
	return t(), nil
}

// Upstreams returns the names of the upstreams.
func (l *List) Upstreams() []string { return sorted(l.tables) }

// Files returns the files that the list names, relative to its folder.
func (l *List) Files() []string { return l.files }

// Usual returns the table of the default upstream.
func (l *List) Usual() *Table { return l.tables[l.usual]() }

// With returns the list with another table of one upstream, such as another profile.
func (l *List) With(t *Table) *List {
	view := List{tables: maps.Clone(l.tables), usual: l.usual, files: l.files}
	view.tables[t.Upstream] = func() *Table { return t }
	return &view
}

// Lookup returns the method with that ID and its table. It tries the default upstream first.
func (l *List) Lookup(method string) (*Table, Method, error) {
	names := append([]string{l.usual}, l.Upstreams()...)
	for _, name := range names {
		t := l.tables[name]()
		if m, err := t.Lookup(method); err == nil {
			return t, m, nil
		}
	}
	known := map[string]bool{}
	for _, t := range l.tables {
		for id := range t().methods {
			known[id] = true
		}
	}
	return nil, Method{}, fmt.Errorf("%w: %q%s", quota.ErrUnpriced, words.Clip(method),
		didYouMean(method, known))
}

// Default returns the shipped table of the default upstream.
func Default() *Table { return Shipped().Usual() }

// Shipped returns the list that ships with the programs.
func Shipped() *List { return shipped() }

// shipped reads the index, and each upstream's list on its first use.
var shipped = sync.OnceValue(func() *List {
	data, err := fs.ReadFile(quotabudget.Costs(), "costs.yaml")
	if err == nil {
		p := &parser{files: quotabudget.Costs(), shipped: true,
			list: &List{tables: map[string]func() *Table{}}}
		if p.front("costs.yaml", data); len(p.Problems) == 0 {
			return p.list
		}
		err = &p.Error
	}
	panic(fmt.Sprintf("costs: the embedded costs.yaml: %v", err)) // a test reads it
})
