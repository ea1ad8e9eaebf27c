package costs

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// schemas returns the schemas of a list and of an index of lists.
var schemas = sync.OnceValue(func() (s struct{ list, front *grammar.Schema }) {
	formats := grammar.Formats{
		"path": checkPath,
		"name": quota.CheckName,
		"window": func(text string) error {
			_, err := quota.ParseWindow(text, "")
			return err
		},
		"day": func(text string) error {
			_, month := time.Parse("2006-01", text)
			_, day := time.Parse(time.DateOnly, text)
			if month == nil || day == nil {
				return nil
			}
			return errors.New("must be a day such as 2026-06-01 or a month such as 2026-11")
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
	scope   scope             // names that every expression may use
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
		scope:  scope{Tables: map[string]PriceTable{}}}
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
			if r.compile(&e.value, scopeRequest, resultNumber, at); e.value != nil {
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
func (r *reader) compile(f **formula, kind scopeKind, result resultType, at grammar.Place) {
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

// fact is a property of a call that determines its bucket part or its price, such as the model.
type fact struct {
	name    string
	Request *formula // value in the request
	// Response is the value in the response, or nil. It replaces the value in the request.
	Response *formula
}

// UnmarshalYAML reads an expression, or {request, response}.
func (f *fact) UnmarshalYAML(n *yaml.Node) error {
	type plain fact
	return grammar.DecodeEither(n, &f.Request, (*plain)(f))
}

// wordForm matches names of facts and tables, which are used in expressions.
var wordForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// methodFact names the fact that every request has: its method.
const methodFact = "method"

func (r *reader) fact(name string, f fact, at grammar.Place) {
	if !r.free(name, at) {
		return
	}
	r.splits = append(r.splits, name)
	request := at
	if f.Response != nil {
		request = at.Key("request")
	}
	r.compile(&f.Request, scopeRequest, resultText, request)
	r.compile(&f.Response, scopeAnswer, resultText, at.Key("response"))
	if f.name = name; f.Request != nil {
		r.table.facts = append(r.table.facts, f)
	}
}

// free reports whether a name is still unused in expressions, and adds a problem if not.
func (r *reader) free(name string, at grammar.Place) bool {
	if wordForm.MatchString(name) && !r.names[name] && !reserved(name) {
		r.names[name] = true
		return true
	}
	at.Add("%q cannot be used as a name, or is in use", words.Clip(name))
	return false
}

// bucket checks a bucket, and adds it to the table.
func (r *reader) bucket(name string, f fileBucket, at grammar.Place) {
	if err := quota.CheckName(name); err != nil {
		at.Add("%v", err)
	}
	b := f.Bucket
	b.Name, b.Unit, b.Source = name, unitOf(f.Unit), r.source(f.Source, at.Key("source"))
	for i, fact := range f.Split {
		if fact != methodFact && !slices.Contains(r.splits, fact) {
			at.Key("split").Item(i).Add("%q is neither a fact in split nor %s%s",
				words.Clip(fact), methodFact, words.DidYouMean(fact, r.splits))
		}
	}
	if word := cmp.Or(f.Reset, "day"); f.Timezone != "" && !quota.IsCalendarWord(word) {
		at.Key("reset").Add("%q is not a calendar window such as day", words.Clip(word))
	} else if f.Timezone != "" {
		b.Reset = window(word, f.Timezone, at.Key("timezone"))
	}
	for i, l := range f.Limits {
		at := at.Key("limits").Item(i)
		if l.Headroom > l.Units {
			at.Key("headroom").Add("%d is more than the %d units of the limit", l.Headroom, l.Units)
		}
		b.Limits = append(b.Limits, quota.Limit{Bucket: name, Units: l.Units, Headroom: l.Headroom,
			Window: window(l.Window, l.Timezone, at.Key("window"))})
	}
	if f.Daily != nil {
		b.Daily, b.Limits = *f.Daily, nil
		for _, w := range []quota.Window{quota.Sliding(24 * time.Hour), b.Reset} {
			b.Limits = append(b.Limits, quota.Limit{Bucket: name, Units: b.Daily,
				Headroom: b.Daily * defaultHeadroom / 100, Window: w})
		}
	}
	if other, ok := r.metrics[b.Metric]; ok && b.Metric != "" {
		at.Key("metric").Add("bucket %s has the metric of %s", b.Name, other)
	}
	r.metrics[b.Metric], r.places[b.Name] = b.Name, len(r.table.buckets)
	r.table.buckets = append(r.table.buckets, b)
}
