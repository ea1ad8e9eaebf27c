package costs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// Parse reads a price list that names no other files, and returns the table of its default
// upstream.
func Parse(data []byte) (*Table, error) {
	l, err := ParseList("costs.yaml", data, nil)
	if err != nil {
		return nil, err
	}
	return l.Usual(), nil
}

// MaxFile is how many bytes a file of a price list may have.
const MaxFile = 4 << 20

// ParseList reads a price list, whose file has that name: the front door, which names upstreams, or
// the list of one upstream. The files that it names are read from files, the folder that it is in.
//
// It is strict, and its error joins a *Problem for each mistake: an unknown or repeated key, a
// bucket that is not declared, a cost below 0, an expression of another type, a route that two
// methods share and the like.
func ParseList(name string, data []byte, files fs.FS) (*List, error) {
	p := newParser(files)
	p.front(name, data)
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	for _, t := range p.list.tables {
		if t().old {
			t().adopt()
		}
	}
	return p.list, nil
}

// parser reads the files of a list.
type parser struct {
	files fs.FS
	list  *List
	errs  []error
	lazy  bool                       // files are read when their upstream is asked for
	keys  map[string]map[string]bool // by section, those that the readers know; nil: not asked for
}

func newParser(files fs.FS) *parser {
	return &parser{files: files, list: &List{tables: map[string]func() *Table{}}}
}

// Problem is one thing that is wrong with a price list.
type Problem struct {
	File string // that the list names; "" for the list itself
	yamlfile.Problem
}

// Error is the problem with its place before it.
func (p *Problem) Error() string {
	if p.File != "" {
		return p.File + ": " + p.Problem.String()
	}
	return p.Problem.String()
}

// fail adds problems of a file; "" is the front door's.
func (p *parser) fail(file string, problems ...yamlfile.Problem) {
	for _, problem := range problems {
		p.errs = append(p.errs, &Problem{file, problem})
	}
}

// document is the top of a file's YAML.
func (p *parser) document(file string, data []byte) (*yaml.Node, bool) {
	root, problem := yamlfile.Document(data)
	if problem == nil && root == nil {
		problem = &yamlfile.Problem{Line: 1, Text: "the price list is empty"}
	}
	if problem != nil {
		p.fail(file, *problem)
		return nil, false
	}
	return root, true
}

// front reads the file that the list begins with.
func (p *parser) front(name string, data []byte) {
	root, ok := p.document("", data)
	if !ok {
		return
	}
	if !hasKey(root, "upstreams") {
		t := p.upstream("", root, strings.TrimSuffix(path.Base(name), path.Ext(name)))
		if t != nil {
			p.list.tables[t.Upstream], p.list.usual = func() *Table { return t }, t.Upstream
		}
		return
	}
	r := &reader{parser: p}
	var usual *yaml.Node
	r.fields(root, "the price list", "front", yamlfile.Fields{
		"default": func(n *yaml.Node) { usual = n },
		"upstreams": func(n *yaml.Node) {
			r.each(n, "upstreams", func(name string, key, n *yaml.Node) {
				r.listed(name, key, n)
			})
		},
	}, "default", "upstreams")
	if usual != nil {
		p.list.usual = r.text(usual, "default")
		known := r.names
		if len(p.errs) == 0 && !slices.Contains(known, p.list.usual) {
			r.Add(usual, "default: no upstream %q%s", spell.Clip(p.list.usual),
				spell.DidYouMean(p.list.usual, known))
		}
	}
	p.fail("", r.Sorted()...)
}

// listed reads one of the front door's upstreams: a file, or the list itself.
func (r *reader) listed(name string, key, n *yaml.Node) {
	r.names = append(r.names, name)
	if err := quota.CheckName(name); err != nil {
		r.Add(key, "upstream %v", err)
		return
	}
	read := func() *Table {
		t := r.readUpstream(name, n)
		if t == nil && r.lazy {
			panic(fmt.Sprintf("costs: the embedded list of %s: %v", name, errors.Join(r.errs...)))
		}
		return t
	}
	if r.lazy {
		r.list.tables[name] = sync.OnceValue(read)
	} else if t := read(); t != nil {
		r.list.tables[name] = func() *Table { return t }
	}
}

// readUpstream reads the list of an upstream, in its file or in this one; nil when something is
// wrong.
func (r *reader) readUpstream(name string, n *yaml.Node) (t *Table) {
	if n.Kind != yaml.ScalarNode {
		t = r.upstream("", n, name)
	} else if file, root := r.open(n, name); root != nil {
		t = r.upstream(file, root, name)
	}
	if t != nil {
		t.Upstream = name
	}
	return t
}

// open reads the file that a node names: a plain file in the folder of the list, or below it.
func (r *reader) open(n *yaml.Node, name string) (file string, root *yaml.Node) {
	file, ok := r.Text(n, "upstream "+name)
	if !ok {
		return "", nil
	}
	if r.files == nil || !fs.ValidPath(file) {
		r.Add(n, "upstream %s: %q is not a file in the folder of this one, such as costs/%s.yaml",
			name, spell.Clip(file), name)
		return "", nil
	}
	info, err := fs.Stat(r.files, file)
	var data []byte
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("not a plain file")
	case info.Size() > MaxFile:
		err = fmt.Errorf("%d bytes: %d at most", info.Size(), MaxFile)
	default:
		data, err = fs.ReadFile(r.files, file)
	}
	if err != nil {
		if reason, ok := errors.AsType[*fs.PathError](err); ok {
			err = reason.Err
		}
		r.Add(n, "upstream %s: %s: %v", name, file, err)
		return "", nil
	}
	root, _ = r.document(file, data)
	return file, root
}

// upstream reads the price list of one upstream; nil when something is wrong with it.
func (p *parser) upstream(file string, root *yaml.Node, name string) *Table {
	r := newReader(p, name)
	t := r.read(root)
	problems := r.Sorted()
	p.fail(file, problems...)
	if len(problems) > 0 {
		return nil
	}
	t.old = r.old
	return t
}

// adopt takes what the old form does not say from the list of the same service that ships: the
// place of the credential, and how the upstream refuses.
func (t *Table) adopt() {
	for _, table := range Shipped().tables {
		if of := table(); of.Service == t.Service {
			t.Credential, t.errors, t.refusals = of.Credential, of.errors, of.refusals
		}
	}
}

func hasKey(n *yaml.Node, key string) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}
