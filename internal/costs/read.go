package costs

import (
	"cmp"
	"errors"
	"fmt"
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
		"ttl":   checkDuration(time.Second, 24*time.Hour),
		"until": checkUntil,
		"lapse": checkDuration(time.Minute, 30*24*time.Hour),
		"meter": checkMeterURL,
		"lag":   checkDuration(0, 72*time.Hour),
	}
	s.list = grammar.NewSchema(quotabudget.CostsSchema, "#/$defs/list", formats)
	s.front = grammar.NewSchema(quotabudget.CostsSchema, "#/$defs/front", formats)
	return s
})

// reader makes the table of one upstream. It checks references and the types of expressions, which
// the schema cannot.
type reader struct {
	file    *grammar.File
	table   Table
	sources map[string]Source
	metrics map[string]string // buckets by their metrics
	places  map[string]int    // indexes of the table's buckets, by name
	shapes  map[string]string // methods by the shapes of their routes
	scope   formula.Scope     // names that every expression may use
	failed  entries[string]   // default price of a failed call
	splits  []string          // names of the facts, including invalid ones
}

func newReader(file *grammar.File, name string) *reader {
	return &reader{file: file, sources: map[string]Source{}, metrics: map[string]string{},
		places: map[string]int{}, scope: formula.Scope{Tables: map[string]formula.Table{}},
		shapes: map[string]string{},
		table:  Table{Upstream: name, profiles: map[string]profile{}, listed: map[string]Method{}}}
}

// usualProfile is the default profile.
const usualProfile = "current"

// read makes the table of a list, or returns nil if the profile in use is missing. Each section may
// refer to earlier ones.
func (r *reader) read(f *fileList, at grammar.Place) *Table {
	t := &r.table
	r.upstream(f, at)
	r.sources, t.sources = f.Sources, f.Sources
	for _, s := range f.Sources {
		t.Date = max(t.Date, s.Date)
	}
	for i, e := range f.Tables {
		r.lookupTable(e.key, e.value, at.Key("tables").Pair(i))
	}
	for i, e := range f.Split {
		r.fact(e.key, e.value, at.Key("split").Pair(i))
	}
	for i, e := range f.Numbers {
		r.number(e.key, e.value, at.Key("numbers").Pair(i))
	}
	for i, e := range f.Buckets {
		r.bucket(e.key, e.value, at.Key("buckets").Pair(i))
	}
	r.failed = f.Failed
	for i, e := range f.Methods {
		r.method(e.key, e.value, at.Key("methods").Pair(i), at)
	}
	r.errorForm(f.Errors, at.Key("errors"))
	for i, l := range f.Learn {
		r.learning(l, at.Key("learn").Item(i))
	}
	for i, rule := range f.Refusals {
		r.refusing(rule, at.Key("refusals").Item(i))
	}
	for i, m := range f.Meter {
		r.meter(m, at.Key("meter").Item(i))
	}
	for i, e := range f.Profiles {
		r.profile(e.key, e.value, at.Key("profiles").Pair(i))
	}
	for _, w := range t.warns {
		if !slices.Contains(r.splits, w.fact) {
			at.Key("tables").Key(w.table).Key("warn").Add("%q is not a fact, which split lists",
				words.Clip(w.fact))
		}
	}
	t.Version = cmp.Or(f.Version, t.Date)
	t.refusesSuccess = slices.ContainsFunc(t.refusals, refusing.ofSuccess)
	t.readsAnswers = t.refusesSuccess || slices.ContainsFunc(t.learn, learning.readsBody)
	t.answering = r.factsOfAnswers()
	if len(t.profiles) == 0 {
		t.profiles[usualProfile] = profile{}
	}
	view, err := t.Profile(cmp.Or(f.Profile, usualProfile))
	if err != nil {
		at.Key("profile").Add("%v", err)
	}
	return view
}

// upstream reads the addresses, the credential and the other properties of the upstream.
func (r *reader) upstream(f *fileList, at grammar.Place) {
	t := &r.table
	t.Service, t.Hosts, t.uploads, t.overrides = f.Service, f.Hosts, f.Uploads, f.Override
	t.oauth, t.zeros, t.Environment = f.OAuth, f.Zeros, f.Environment
	if t.Endpoint = f.Endpoint; t.Endpoint == "" && len(f.Hosts) > 0 {
		t.Endpoint = "https://" + f.Hosts[0]
	}
	t.Endpoint = strings.TrimSuffix(t.Endpoint, "/") + "/"
	if f.Credential != nil {
		t.Credential = *f.Credential
		if (t.Credential.Header == "") == (t.Credential.Query == "") {
			at.Key("credential").Add("write header or query, one of them")
		}
	}
}

func bearer() Place { return Place{Header: "Authorization", Prefix: "Bearer "} }

var headerForm = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// source returns the named source of figures. "" is none; the schema requires one where needed.
func (r *reader) source(name string, at grammar.Place) Source {
	s, ok := r.sources[name]
	if !ok && name != "" && !r.file.Full() {
		at.Add("%q is not among the sources%s", words.Clip(name), didYouMean(name, r.sources))
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

// expression compiles an expression. It returns nil if there is none or it is invalid. A constant
// number is also evaluated.
func (r *reader) expression(text string, kind formula.Kind,
	compile func(string, formula.Scope) (*formula.Formula, error),
	at grammar.Place) *formula.Formula {
	if text == "" || at.Refused() {
		return nil
	}
	scope := r.scope
	scope.Kind = kind
	for _, f := range r.table.facts {
		scope.Facts = append(scope.Facts, f.name)
	}
	for _, n := range r.table.numbers {
		scope.Numbers = append(scope.Numbers, n.name)
	}
	f, err := compile(text, scope)
	if err == nil && f.Constant() && f.IsNumber() {
		_, err = f.Units(nil)
	}
	if err != nil {
		at.Add("%v", err)
		return nil
	}
	return f
}

func checkDuration(least, most time.Duration) func(string) error {
	return func(text string) error {
		if d, err := time.ParseDuration(text); err != nil || d < least || d > most {
			return fmt.Errorf("%q is not a duration from %gs to %gh", words.Clip(text),
				least.Seconds(), most.Hours())
		}
		return nil
	}
}

func checkUntil(text string) error {
	if text != "window" && checkDuration(time.Second, farthest)(text) != nil {
		return errors.New("write window, a time such as 1m, {header: NAME, as: FORM} or " +
			"{path: PATH, as: FORM}")
	}
	return nil
}

// duration returns a duration that the schema has checked, or the default.
func duration(text string, usual time.Duration) time.Duration {
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	return usual
}
