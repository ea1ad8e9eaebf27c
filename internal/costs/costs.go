// Package costs reads the price list: which request is which method, and what a call of it costs.
package costs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// Table is the price list of one upstream in one of its profiles. It never changes, so it may be
// shared.
type Table struct {
	Upstream   string   // its name in the list
	Version    string   // version of the list; Date by default
	Date       string   // date of the newest figure: 2026-11-17 or 2026-11
	Service    string   // the upstream's own name for itself; "" where it has none
	Hosts      []string // where the upstream answers
	Endpoint   string   // URL that requests are sent to, which ends in a slash
	Credential Place
	// Environment is the variables in which libraries of the API look for its address, with the
	// path that belongs to it: / or /v1.
	Environment map[string]string

	day       string // for which tables are read; "" for today
	tables    []PriceTable
	sources   map[string]Source
	profile   string
	profiles  map[string]profile
	uploads   []string // path prefixes
	overrides []string // last words of the methods that may come as POST, too
	oauth     bool     // of methods that do not say otherwise
	buckets   []Bucket
	listed    map[string]Method // as the file lists them
	methods   map[string]Method // with the prices of the profile
	routes    *segment

	facts     []fact // facts of a call that split buckets
	numbers   []number
	warns     []warning
	answering []string // facts by which answers are read
	zeros     []string // paths of numbers that answers leave out when they are 0
	errors    errorForm
	learn     []learning
	refusals  []refusing
	meters    []Meter

	files func(ctx context.Context, name string) (Lines, error) // that were sent before; or nil

	readsAnswers   bool // of calls whose price is known, too
	refusesSuccess bool // a rule is about an answer with a status below 300
}

// Place is where a request carries the credential: a header, or a parameter of the query. The zero
// Place is a bearer token.
type Place struct {
	Header string // Authorization
	Prefix string // what comes before the credential in the header: "Bearer "
	Query  string // name of the parameter; "" when it is a header

	// What else may hold a credential: a request that has one of its own there is not for us to
	// send on.
	Params  []string
	Headers []string
}

// Bucket is a pool of the upstream's quota.
type Bucket struct {
	Name     string
	Metric   string       // the upstream's name for it: example.com/default; "" for none
	Unit     Unit         // what it counts
	Daily    int64        // units that a new account is given each day; 0 where the list has limits
	Reset    quota.Window // the upstream's day; zero where it has none
	Split    []string     // facts of a request, for each of which it has a part of its own
	Required bool         // its limits hold where none are configured
	Limits   []quota.Limit
	Source   Source // of the limits
	Note     string
}

// Method is one priced operation.
type Method struct {
	ID     string // as in the discovery document: things.list
	Verb   string // GET
	Path   string // /v3/captions/{id}; a name in braces stands for one segment
	Upload bool   // also reached below the upload paths
	OAuth  bool   // takes the token of a user in place of an API key
	Form   bool   // takes fields as application/x-www-form-urlencoded, too
	// what one call takes, in the order of the table's buckets; of a method whose price depends on
	// the request or on the answer, what does not
	Costs  []quota.Cost
	Terms  []Term // all that it takes, by bucket
	Source Source
	Note   string

	routes []route
	rules  *rules // nil if the price is fixed
	lines  *calls // that the request carries; or nil

	needsBody, needsJSON bool     // to be priced
	facts                []string // that its price depends on
	numbers              []number // that its expressions use
	parted               bool     // what it takes is of a part that depends on the request
}

// Known reports whether a call takes the same units each time: Costs, known before it is made.
func (m Method) Known() bool { return m.rules == nil && !m.needsBody && !m.parted }

// Numbers returns the expressions of the named numbers that the method's prices are made of.
func (m Method) Numbers() map[string]string {
	all := map[string]string{}
	for _, n := range m.numbers {
		all[n.name] = n.value.Text
	}
	return all
}

// Term is what a call takes from one bucket, as the list writes it.
type Term struct {
	Bucket string
	Take   string // known when the call is made: "1", "len(body.items)"
	Hold   string // estimated when it is made
	Settle string // known after it
}

// Source is where a figure comes from.
type Source struct {
	Status string // official, secondary or unverified
	Date   string // 2026-06-01 or 2026-11
	Text   string
}

// PriceTable is a table of figures or words, such as the prices of a token by model.
type PriceTable struct {
	Name string
	formula.Table
	Feed     Feed
	defaults map[string]yaml.Node
}

// Feed is where the rows of a table come from.
type Feed struct {
	URL       string
	Format    string
	Providers []string // what feeds call the upstream; its name by default
}

// Usual returns the figure of a column that a row leaves out, if there is one.
func (t PriceTable) Usual(column string, row map[string]float64) (figure float64, ok bool) {
	usual, ok := t.defaults[column]
	if !ok {
		return 0, false
	}
	if figure, err := strconv.ParseFloat(usual.Value, 64); err == nil {
		return figure, true
	}
	figure, ok = row[usual.Value]
	return figure, ok
}

// At returns the same table with the prices of a day such as 2026-12-01.
func (t *Table) At(day string) *Table {
	view := *t
	view.day = day
	return &view
}

// Day returns the day whose prices count: today in UTC, unless At chose another.
func (t *Table) Day() string {
	return cmp.Or(t.day, time.Now().UTC().Format(time.DateOnly))
}

// Tables lists the tables of the list.
func (t *Table) Tables() []PriceTable { return t.tables }

// On returns the rows that count on a day.
func (t PriceTable) On(day string) []formula.Row {
	return slices.DeleteFunc(slices.Clone(t.Rows), func(r formula.Row) bool {
		later := func(other formula.Row) bool {
			return other.Key == r.Key && other.Since > r.Since && other.Counts(day)
		}
		return !r.Counts(day) || slices.ContainsFunc(t.Rows, later)
	})
}

// Source returns the source of that name.
func (t *Table) Source(name string) Source { return t.sources[name] }

// profile replaces the costs of some methods.
type profile struct{ prices map[string]price }

type price struct {
	costs  []quota.Cost
	source Source
}

// Profile is the same table with the prices of the named profile.
func (t *Table) Profile(name string) (*Table, error) {
	p, ok := t.profiles[name]
	if !ok {
		return nil, fmt.Errorf("no profile %q in the price list: it has %s", name,
			strings.Join(t.Profiles(), ", "))
	}
	view := *t
	view.profile, view.methods = name, maps.Clone(t.listed)
	for id, price := range p.prices {
		m := view.methods[id]
		m.Costs, m.Terms, m.Source = price.costs, termsOf(price.costs), price.source
		view.methods[id] = m
	}
	return &view, nil
}

// Profiles lists the names that Profile takes.
func (t *Table) Profiles() []string { return sorted(t.profiles) }

// ProfileName is the profile whose prices the table shows.
func (t *Table) ProfileName() string { return t.profile }

// Price is what one call of the method takes.
func (t *Table) Price(method string) ([]quota.Cost, error) {
	m, err := t.Lookup(method)
	return m.Costs, err
}

// Lookup is the method of that ID. A method that is not in the table is quota.ErrUnpriced: no price
// is guessed.
func (t *Table) Lookup(method string) (Method, error) {
	m, ok := t.methods[method]
	if !ok {
		return Method{}, fmt.Errorf("%w: %q%s", quota.ErrUnpriced, words.Clip(method),
			didYouMean(method, t.methods))
	}
	m.Costs = slices.Clone(m.Costs)
	return m, nil
}

// Methods lists every method in the order of their IDs.
func (t *Table) Methods() []Method {
	all := make([]Method, 0, len(t.methods))
	for _, id := range sorted(t.methods) {
		m, _ := t.Lookup(id)
		all = append(all, m)
	}
	return all
}

// Buckets lists the buckets that the profile's methods draw on, in the order of the file.
func (t *Table) Buckets() []Bucket {
	drawn := map[string]bool{}
	for _, m := range t.methods {
		for _, term := range m.Terms {
			drawn[term.Bucket] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(t.buckets), func(b Bucket) bool { return !drawn[b.Name] })
}

// BucketNames returns the names of Buckets.
func (t *Table) BucketNames() (names []string) {
	for _, b := range t.Buckets() {
		names = append(names, b.Name)
	}
	return names
}

// Bucket is the bucket of the profile with that name, or the one that a part such as output/small
// is of, if there is one.
func (t *Table) Bucket(name string) (Bucket, bool) {
	name, _, _ = strings.Cut(name, "/")
	for _, b := range t.Buckets() {
		if b.Name == name {
			return b, true
		}
	}
	return Bucket{}, false
}

// bucketNamed is the bucket of that name, in whatever profile.
func (t *Table) bucketNamed(name string) Bucket {
	for _, b := range t.buckets {
		if b.Name == name {
			return b
		}
	}
	return Bucket{}
}

// Learns reports whether responses to calls of a known price have to be read: they report what is
// left of limits, or refuse.
func (t *Table) Learns() bool { return len(t.learn) > 0 || t.refusesSuccess }

// Estimated reports whether some method sets an estimate aside in the bucket, or the part of one.
func (t *Table) Estimated(bucket string) bool {
	whole := quota.WholeOf(bucket)
	for _, m := range t.methods {
		if m.rules != nil && slices.ContainsFunc(m.rules.holds, func(h holding) bool {
			return h.bucket == whole && h.estimates()
		}) {
			return true
		}
	}
	return false
}

// Reset is the window in which the upstream fills a bucket up again. Where the list gives none, it
// is the longest of the list's limits on it that is a calendar's, and else the day in UTC.
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

// BucketOfMetric is the bucket of the profile that the upstream calls by this metric, if there is
// one.
func (t *Table) BucketOfMetric(metric string) (Bucket, bool) {
	for _, b := range t.Buckets() {
		if b.Metric == metric && metric != "" {
			return b, true
		}
	}
	return Bucket{}, false
}

// defaultHeadroom is the share of a limit kept for people where nothing is configured, in percent.
const defaultHeadroom = 5

// DefaultLimits is what applies where nothing is configured: the limits of the buckets that are
// required. Daily units limit twice, in any 24 hours and in the upstream's calendar day, with a
// headroom of 5 %, rounded down so that a small limit is not all headroom.
func (t *Table) DefaultLimits() []quota.Limit {
	var limits []quota.Limit
	for _, b := range t.Buckets() {
		if b.Required {
			limits = append(limits, b.Limits...)
		}
	}
	return limits
}

// Unlimited reports whether the list has buckets that need no limit: what is taken from them is
// recorded.
func (t *Table) Unlimited() bool {
	return slices.ContainsFunc(t.Buckets(), func(b Bucket) bool { return !b.Required })
}

// dailyLimits are the limits of a bucket of so many units a day.
func (b Bucket) dailyLimits() (limits []quota.Limit) {
	for _, w := range []quota.Window{quota.Sliding(24 * time.Hour), b.Reset} {
		limits = append(limits, quota.Limit{Bucket: b.Name, Units: b.Daily,
			Headroom: b.Daily * defaultHeadroom / 100, Window: w})
	}
	return limits
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// didYouMean is the hint at the one of the known that was meant, or "".
func didYouMean[V any](word string, known map[string]V) string {
	return words.DidYouMean(word, sorted(known))
}
