// Package costs prices calls of an API by price lists, and updates the lists from public data sets.
package costs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// Table is the price list of one upstream, with one of its profiles. It is immutable and may be
// shared.
type Table struct {
	Upstream   string   `yaml:"-"` // its name in the list
	Version    string   // version of the list; Date by default
	Date       string   `yaml:"-"` // date of the newest figure: 2026-11-17 or 2026-11
	Service    string   // the upstream's own name for itself; or ""
	Hosts      []string // host names of the upstream
	Endpoint   string   // URL to send requests to, ending in a slash
	Credential Place
	// Environment maps the variables in which libraries of the API look for its address to the path
	// of that address: / or /v1.
	Environment map[string]string

	sections `yaml:",inline"`

	day      string // day whose prices apply; "" for today
	tables   []PriceTable
	profile  string
	profiles map[string]profile
	buckets  []Bucket
	drawn    []Bucket          // on which methods of the profile draw
	listed   map[string]Method // with the prices of the file
	methods  map[string]Method // with the prices of the profile
	routes   []route

	facts   []fact // facts of a call that split buckets
	numbers formulas
	meters  []Meter

	files func(ctx context.Context, name string) (Lines, error) // reads an uploaded file; or nil
}

// Place is the header or query parameter for the credential. The zero Place is a bearer token.
type Place struct {
	Header string // Authorization
	Prefix string // text before the credential in the header: "Bearer "
	Query  string // name of the parameter; "" for a header

	// Params and Headers may also contain a credential. Requests that bring their own credential
	// there are refused.
	Params  []string
	Headers []string
}

// AllHeaders returns the headers that may contain a credential.
func (p Place) AllHeaders() []string { return withName(p.Headers, p.Header) }

// AllParams returns the parameters that may contain a credential.
func (p Place) AllParams() []string { return withName(p.Params, p.Query) }

func withName(names []string, name string) []string {
	if name == "" || slices.Contains(names, name) {
		return slices.Clone(names)
	}
	return append(slices.Clone(names), name)
}

// InHeader reports whether a header may contain the credential.
func (p Place) InHeader(name string) bool {
	same := func(header string) bool { return strings.EqualFold(header, name) }
	return slices.ContainsFunc(p.AllHeaders(), same)
}

// Bucket is a pool of the upstream's quota.
type Bucket struct {
	Name     string        `yaml:"-"`
	Metric   string        // the upstream's name for the bucket: example.com/default; "" for none
	Unit     Unit          `yaml:"-"`
	Daily    int64         `yaml:"-"` // units of a new account each day; 0 if the list has limits
	Reset    quota.Window  `yaml:"-"` // the upstream's day; zero if it has none
	Split    []string      // facts of a request whose values split the bucket into parts
	Required bool          // its limits apply if none are configured
	Limits   []quota.Limit `yaml:"-"`
	Source   Source        `yaml:"-"` // source of the limits
	Note     string
}

// Method is one priced operation.
type Method struct {
	ID     string // as in the discovery document: things.list
	Verb   string // GET
	Path   string // /v3/captions/{id}; a name in braces stands for one segment
	Upload bool   // also served below the upload paths
	OAuth  bool   // accepts a user's token in place of an API key
	Form   bool   // also accepts application/x-www-form-urlencoded
	// Costs is the fixed part of a call's price, in the order of the table's buckets.
	Costs  []quota.Cost
	Terms  []Term // all prices, by bucket
	Source Source
	Note   string

	routes []route
	rules  *rules // nil if the price is fixed
	lines  *calls // calls in the request; or nil

	needsBody, needsJSON bool     // required to price the request
	facts                []string // facts that set the price
	numbers              formulas // numbers that the expressions use
	parted               bool     // the bucket's part depends on the request
}

// Known reports whether every call has the same price: Costs.
func (m Method) Known() bool { return m.rules == nil && !m.needsBody && !m.parted }

// Numbers returns the expressions of the named numbers in the method's prices.
func (m Method) Numbers() map[string]string {
	all := map[string]string{}
	for _, n := range m.numbers {
		all[n.key] = n.value.Text
	}
	return all
}

// Term is the price of a call in one bucket, as written in the list.
type Term struct {
	Bucket string
	Take   string // known before the call: "1", "len(body.items)"
	Hold   string // estimated before the call
	Settle string // known after the call
}

// Source is the source of a figure.
type Source struct {
	Status string // official, secondary or unverified
	Date   string // 2026-06-01 or 2026-11
	Text   string
}

// At returns the table with the prices of a day such as 2026-12-01.
func (t *Table) At(day string) *Table {
	view := *t
	view.day = day
	return &view
}

// Day returns the day whose prices apply: today in UTC, unless At chose another.
func (t *Table) Day() string {
	return cmp.Or(t.day, time.Now().UTC().Format(time.DateOnly))
}

// Tables lists the tables of the list.
func (t *Table) Tables() []PriceTable { return t.tables }

// Source returns the source of that name.
func (t *Table) Source(name string) Source { return t.Sources[name] }

// profile replaces the costs of some methods, by their IDs.
type profile map[string]price

type price struct {
	costs  []quota.Cost
	source Source
}

// Profile returns the table with the prices of the named profile.
func (t *Table) Profile(name string) (*Table, error) {
	p, ok := t.profiles[name]
	if !ok {
		return nil, fmt.Errorf("no profile %q in the price list: it has %s", name,
			strings.Join(t.Profiles(), ", "))
	}
	view, drawn := *t, map[string]bool{}
	view.profile, view.methods = name, maps.Clone(t.listed)
	for id, price := range p {
		m := view.methods[id]
		m.Costs, m.Terms, m.Source = price.costs, termsOf(price.costs), price.source
		view.methods[id] = m
	}
	for _, m := range view.methods {
		for _, term := range m.Terms {
			drawn[term.Bucket] = true
		}
	}
	view.drawn = slices.DeleteFunc(slices.Clone(t.buckets),
		func(b Bucket) bool { return !drawn[b.Name] })
	return &view, nil
}

// Profiles returns the names of the profiles.
func (t *Table) Profiles() []string { return sorted(t.profiles) }

// ProfileName returns the name of the table's profile.
func (t *Table) ProfileName() string { return t.profile }

// Price returns the fixed costs of one call of the method.
func (t *Table) Price(method string) ([]quota.Cost, error) {
	m, err := t.Lookup(method)
	return m.Costs, err
}

// Lookup returns the method with that ID, or quota.ErrUnpriced if the table lacks it. It never
// guesses a price.
func (t *Table) Lookup(method string) (Method, error) {
	m, ok := t.methods[method]
	if !ok {
		return Method{}, fmt.Errorf("%w: %q%s", quota.ErrUnpriced, words.Clip(method),
			didYouMean(method, t.methods))
	}
	m.Costs = slices.Clone(m.Costs)
	return m, nil
}

// Methods returns all methods, in the order of their IDs.
func (t *Table) Methods() (all []Method) {
	for _, id := range sorted(t.methods) {
		m, _ := t.Lookup(id)
		all = append(all, m)
	}
	return all
}

// Buckets returns the buckets that the profile's methods draw on, in the order of the file.
func (t *Table) Buckets() []Bucket { return slices.Clone(t.drawn) }

// BucketNames returns the names of Buckets.
func (t *Table) BucketNames() (names []string) {
	for _, b := range t.Buckets() {
		names = append(names, b.Name)
	}
	return names
}

// Bucket returns the profile's bucket with that name, or the bucket of a part such as output/small.
// It returns false if there is none.
func (t *Table) Bucket(name string) (Bucket, bool) {
	name, _, _ = strings.Cut(name, "/")
	return find(t.drawn, func(b Bucket) bool { return b.Name == name })
}

// bucketNamed returns the bucket with that name, in any profile.
func (t *Table) bucketNamed(name string) Bucket {
	b, _ := find(t.buckets, func(b Bucket) bool { return b.Name == name })
	return b
}

// BucketOfMetric returns the profile's bucket with this metric of the upstream, if there is one.
func (t *Table) BucketOfMetric(metric string) (Bucket, bool) {
	return find(t.drawn, func(b Bucket) bool { return b.Metric == metric && metric != "" })
}

func find(buckets []Bucket, matches func(Bucket) bool) (b Bucket, ok bool) {
	if i := slices.IndexFunc(buckets, matches); i >= 0 {
		return buckets[i], true
	}
	return b, false
}

// Learns reports whether responses to calls of a known price must be read, because they may report
// limits or refuse the call.
func (t *Table) Learns() bool { return len(t.Learn) > 0 || t.refusesSuccess() }

// Estimated reports whether any method sets an estimate aside in the bucket or part.
func (t *Table) Estimated(bucket string) bool {
	whole := quota.WholeOf(bucket)
	estimated := func(h holding) bool { return h.bucket == whole && h.estimates() }
	for _, m := range t.methods {
		if m.rules != nil && slices.ContainsFunc(m.rules.holds, estimated) {
			return true
		}
	}
	return false
}

// Reset returns the window after which the upstream refills a bucket. The default is the longest
// calendar window of its limits in the list, or else the day in UTC.
func (t *Table) Reset(bucket string) quota.Window {
	b, _ := t.Bucket(bucket)
	reset := b.Reset
	for _, l := range b.Limits {
		if !b.Reset.IsCalendar() && l.Window.IsCalendar() && l.Window.Longest() > reset.Longest() {
			reset = l.Window
		}
	}
	if !reset.IsCalendar() {
		return quota.Window{Calendar: "day", Zone: time.UTC}
	}
	return reset
}

// DayOf returns the calendar day in the zone of a bucket's reset, even if that is monthly.
func (t *Table) DayOf(bucket string) quota.Window {
	return quota.Window{Calendar: "day", Zone: t.Reset(bucket).Zone}
}

// defaultHeadroom is the share of a default limit that is kept for people, in percent.
const defaultHeadroom = 5

// DefaultLimits returns the limits of the required buckets, which apply if none are configured.
// Daily units become two limits, for any 24 hours and for the upstream's calendar day. Their
// headroom is rounded down, so that a small limit is not all headroom.
func (t *Table) DefaultLimits() (limits []quota.Limit) {
	for _, b := range t.Buckets() {
		if b.Required {
			limits = append(limits, b.Limits...)
		}
	}
	return limits
}

// Unlimited reports whether the list has buckets that need no limit. Their use is only recorded.
func (t *Table) Unlimited() bool {
	return slices.ContainsFunc(t.Buckets(), func(b Bucket) bool { return !b.Required })
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// didYouMean suggests the known word that was probably meant, or returns "".
func didYouMean[V any](word string, candidates map[string]V) string {
	return words.DidYouMean(word, sorted(candidates))
}
