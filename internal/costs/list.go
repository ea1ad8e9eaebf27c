package costs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"

	"quotabudget"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// List is the price lists of several upstreams. It never changes, so it may be shared.
type List struct {
	tables map[string]func() *Table
	usual  string
	files  []string
}

// Upstream is the price list of the upstream of that name, in the profile that the list chooses; ""
// is the default one.
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

// Upstreams lists the names that Upstream takes.
func (l *List) Upstreams() []string { return sorted(l.tables) }

// Files lists the files that the list names, relative to its folder.
func (l *List) Files() []string { return l.files }

// Usual is the table of the upstream that is meant where none is named.
func (l *List) Usual() *Table { return l.tables[l.usual]() }

// With is the same list with another table of one of its upstreams: another profile.
func (l *List) With(t *Table) *List {
	view := List{tables: maps.Clone(l.tables), usual: l.usual, files: l.files}
	view.tables[t.Upstream] = func() *Table { return t }
	return &view
}

// Lookup is the method of that ID, and the table that has it. The default upstream goes first.
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

// Default is the table of the default upstream that ships with the programs.
func Default() *Table { return Shipped().Usual() }

// Shipped is the list that ships with the programs.
func Shipped() *List { return shipped() }

// shipped reads the front door, and each upstream's list when it is asked for.
var shipped = sync.OnceValue(func() *List {
	data, err := fs.ReadFile(quotabudget.Costs(), "costs.yaml")
	if err == nil {
		p := &parser{files: quotabudget.Costs(), shipped: true,
			list: &List{tables: map[string]func() *Table{}}}
		p.front("costs.yaml", data)
		if err = errors.Join(p.errs...); err == nil {
			return p.list
		}
	}
	panic(fmt.Sprintf("costs: the embedded costs.yaml: %v", err)) // a test reads it
})
