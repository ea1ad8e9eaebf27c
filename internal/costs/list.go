package costs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"sync"

	"quotabudget"
	"quotabudget/internal/grammar"
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
	name = cmp.Or(name, l.usual)
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
	methods := map[string]bool{}
	for _, t := range l.tables {
		for id := range t().methods {
			methods[id] = true
		}
	}
	return nil, Method{}, fmt.Errorf("%w: %q%s", quota.ErrUnpriced, words.Clip(method),
		didYouMean(method, methods))
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

// MaxFile is the maximum size of a price list's file, in bytes.
const MaxFile = 4 << 20

// ParseList parses the price list in a file of that name: an index of upstreams, or the list of one
// upstream. It reads the lists that an index names from files, the index's folder. Its error is a
// *grammar.Error, in which Where is the name of such a file.
func ParseList(name string, data []byte, files fs.FS) (*List, error) {
	p := &parser{files: files, list: &List{tables: map[string]func() *Table{}}}
	p.front(name, data)
	if len(p.Problems) > 0 {
		return nil, &p.Error
	}
	return p.list, nil
}

// parser reads the files of a list.
type parser struct {
	files fs.FS
	list  *List
	grammar.Error
	// shipped is set for the embedded lists. Each is read when its upstream is requested. A test
	// checks them against the schema.
	shipped bool
}

// parse returns a file with content, or nil.
func (p *parser) parse(name string, data []byte) *grammar.File {
	file, problem := grammar.Parse(name, data)
	if problem == nil && file.Empty() {
		problem = &grammar.Problem{Where: name, Line: 1, Text: "the price list is empty"}
	}
	if problem != nil {
		p.Problems = append(p.Problems, *problem)
		return nil
	}
	return file
}

// front reads the main file of the list.
func (p *parser) front(name string, data []byte) {
	file := p.parse("", data)
	if file == nil {
		return
	}
	if !file.Top().Has("upstreams") {
		name = strings.TrimSuffix(path.Base(name), path.Ext(name))
		if t := p.upstream(file, name); t != nil {
			p.list.tables[name], p.list.usual = func() *Table { return t }, name
		}
		return
	}
	var f frontFile
	if p.decode(file, true, &f) {
		p.list.usual = f.Default
		for i, e := range f.Upstreams {
			p.listed(file, e.key, e.value, file.Top().Key("upstreams").Pair(i))
		}
	}
	if _, ok := p.list.tables[f.Default]; !ok && len(p.Problems) == 0 {
		file.Top().Key("default").Add("no upstream %q%s", words.Clip(f.Default),
			didYouMean(f.Default, p.list.tables))
	}
	p.Problems = append(p.Problems, file.Problems()...)
}

// decode decodes a file by the schema of an index or of a list.
func (p *parser) decode(file *grammar.File, front bool, into any) bool {
	switch {
	case p.shipped:
		return file.Decode(nil, into)
	case front:
		return file.Decode(schemas().front, into)
	}
	return file.Decode(schemas().list, into)
}

// listed reads an upstream of an index: its file, or a list inside the index.
func (p *parser) listed(front *grammar.File, name string, u fileUpstream, at grammar.Place) {
	if err := quota.CheckName(name); err != nil {
		at.Add("%v", err)
		return
	}
	read := func() (t *Table) {
		if u.list != nil {
			t = p.read(name, u.list, front, at)
		} else if file := p.open(u.path, at); file != nil {
			t = p.upstream(file, name)
		}
		if t == nil && p.shipped {
			panic(fmt.Sprintf("costs: the embedded list of %s: %v", name, &p.Error))
		}
		return t
	}
	if u.list == nil {
		p.list.files = append(p.list.files, u.path)
	}
	if p.shipped {
		p.list.tables[name] = sync.OnceValue(read)
	} else if t := read(); t != nil {
		p.list.tables[name] = func() *Table { return t }
	}
}

// open reads a plain file in the folder of the list, or below it.
func (p *parser) open(name string, at grammar.Place) *grammar.File {
	if p.files == nil || !fs.ValidPath(name) {
		at.Add("%q is not a file in the folder of this one, such as costs/example.yaml",
			words.Clip(name))
		return nil
	}
	info, err := fs.Stat(p.files, name)
	var data []byte
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("not a plain file")
	case info.Size() > MaxFile:
		err = fmt.Errorf("%d bytes: %d at most", info.Size(), MaxFile)
	default:
		data, err = fs.ReadFile(p.files, name)
	}
	if err != nil {
		if reason, ok := errors.AsType[*fs.PathError](err); ok {
			err = reason.Err
		}
		at.Add("%s: %v", name, err)
		return nil
	}
	return p.parse(name, data)
}

// upstream reads the price list of one upstream, or returns nil if it has mistakes.
func (p *parser) upstream(file *grammar.File, upstream string) *Table {
	var f fileList
	var t *Table
	if p.decode(file, false, &f) {
		t = p.read(upstream, &f, file, file.Top())
	}
	problems := file.Problems()
	p.Problems = append(p.Problems, problems...)
	if len(problems) > 0 {
		return nil
	}
	return t
}
