package costs

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"quotabudget"
	"quotabudget/internal/costs/formula"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// schemas returns the schemas of a list and of an index of lists.
var schemas = sync.OnceValue(func() (s struct{ list, front *grammar.Schema }) {
	formats := grammar.Formats{
		"path": formula.CheckPath,
		"name": quota.CheckName,
		"window": func(text string) error {
			_, err := quota.ParseWindow(text, "")
			return err
		},
		"route": checkRoute,
		"ttl":   grammar.Duration(time.Second, 24*time.Hour),
		"until": checkUntil,
		"lapse": grammar.Duration(time.Minute, 30*24*time.Hour),
		"meter": checkMeterURL,
		"lag":   grammar.Duration(0, 72*time.Hour),
	}
	s.list = grammar.NewSchema(quotabudget.CostsSchema, "#/$defs/list", formats)
	s.front = grammar.NewSchema(quotabudget.CostsSchema, "#/$defs/front", formats)
	return s
})

// reader makes the table of one upstream. It checks references and the types of expressions, which
// the schema cannot.
type reader struct {
	file    *grammar.File
	shipped bool // expressions are compiled when they are needed; a test checks them
	table   Table
	metrics map[string]string // buckets by their metrics
	places  map[string]int    // indexes of the table's buckets, by name
	shapes  map[string]string // methods by the shapes of their routes
	scope   formula.Scope     // names that every expression may use
	failed  formulas          // default price of a failed call
	splits  []string          // names of the facts, including invalid ones
	names   map[string]bool   // that expressions use
}

// usualProfile is the default profile.
const usualProfile = "current"

// read makes the table of a list, or returns nil if the profile in use is missing. Each section may
// refer to earlier ones.
func (p *parser) read(name string, f *fileList, file *grammar.File, at grammar.Place) *Table {
	r := &reader{file: file, shipped: p.shipped, table: f.Table, failed: f.Failed,
		names: map[string]bool{}, metrics: map[string]string{}, places: map[string]int{},
		shapes: map[string]string{},
		scope:  formula.Scope{Tables: map[string]formula.Table{}}}
	t := &r.table
	t.Upstream, t.profiles, t.listed = name, map[string]profile{}, map[string]Method{}
	if t.Endpoint == "" && len(t.Hosts) > 0 {
		t.Endpoint = "https://" + t.Hosts[0]
	}
	t.Endpoint = strings.TrimSuffix(t.Endpoint, "/") + "/"
	for _, s := range t.Sources {
		t.Date = max(t.Date, s.Date)
	}
	for i, e := range f.Tables {
		r.lookupTable(e.key, e.value, at.Key("tables").Pair(i))
	}
	for i, e := range f.Split {
		r.fact(e.key, e.value, at.Key("split").Pair(i))
	}
	for i, e := range f.Numbers {
		at := at.Key("numbers").Pair(i)
		if r.free(e.key, at) {
			if r.compile(&e.value, formula.Request, formula.Number, at); e.value != nil {
				t.numbers = append(t.numbers, e)
			}
		}
	}
	for i, e := range f.Buckets {
		r.bucket(e.key, e.value, at.Key("buckets").Pair(i))
	}
	for i, e := range f.Methods {
		r.method(e.key, e.value, at.Key("methods").Pair(i), at)
	}
	r.errorForm(&t.Errors, at.Key("errors"))
	for i := range t.Learn {
		r.learning(&t.Learn[i], at.Key("learn").Item(i))
	}
	for i := range t.Refusals {
		r.refusing(&t.Refusals[i], t.Refusals[:i], at.Key("refusals").Item(i))
	}
	for i, m := range f.Meter {
		r.meter(m, at.Key("meter").Item(i))
	}
	for i, e := range f.Profiles {
		r.profile(e.key, e.value, at.Key("profiles").Pair(i))
	}
	for _, p := range t.tables {
		if p.warn != "" && !slices.Contains(r.splits, p.warn) {
			at.Key("tables").Key(p.Name).Key("warn").Add("%q is not a fact, which split lists",
				words.Clip(p.warn))
		}
	}
	t.Version = cmp.Or(f.Version, t.Date)
	if len(t.profiles) == 0 {
		t.profiles[usualProfile] = profile{}
	}
	view, err := t.Profile(cmp.Or(f.Profile, usualProfile))
	if err != nil {
		at.Key("profile").Add("%v", err)
	}
	return view
}

var headerForm = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// source returns the named source of figures. "" is none; the schema requires one where needed.
func (r *reader) source(name string, at grammar.Place) Source {
	s, ok := r.table.Sources[name]
	if !ok && name != "" && !r.file.Full() {
		at.Add("%q is not among the sources%s", words.Clip(name), didYouMean(name, r.table.Sources))
	}
	return s
}

// window parses a window and its zone; "" is none.
func window(text, zone string, at grammar.Place) (w quota.Window) {
	if text == "" {
		return w
	}
	w, err := quota.ParseWindow(text, zone)
	if err != nil {
		at.Add("%v", err)
	}
	return w
}

// compile binds an expression to the names that it may use. If it is invalid, it becomes nil.
func (r *reader) compile(f **formula.Formula, kind formula.Kind, result formula.Result,
	at grammar.Place) {
	if *f == nil {
		return
	}
	scope := r.scope
	scope.Kind = kind
	for _, f := range r.table.facts {
		scope.Facts = append(scope.Facts, f.name)
	}
	for _, n := range r.table.numbers {
		scope.Numbers = append(scope.Numbers, n.key)
	}
	if (*f).Bind(scope, result); r.shipped {
		return
	}
	err := (*f).Check()
	if err != nil {
		at.Add("%v", err)
	}
	if err != nil || at.Refused() {
		*f = nil
	}
}

func checkUntil(text string) error {
	if text != "window" && grammar.Duration(time.Second, farthest)(text) != nil {
		return errors.New("write window, a time such as 1m, {header: NAME, as: FORM} or " +
			"{path: PATH, as: FORM}")
	}
	return nil
}
