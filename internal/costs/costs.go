// Package costs reads the price list: which request is which method, and what a call of it costs.
package costs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"quotabudget"
	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
)

// Table is a price list in one of its profiles. It never changes, so it may be shared.
type Table struct {
	Version string   // the day on which its newest figures came into force
	Service string   // the upstream's name: youtube.googleapis.com
	Hosts   []string // where the upstream answers

	profile   string
	profiles  map[string]profile
	uploads   []string // path prefixes
	overrides []string // last words of the methods that may come as POST, too
	oauth     bool     // of methods that do not say otherwise
	buckets   []Bucket
	listed    map[string]Method // as the file lists them
	methods   map[string]Method // with the prices of the profile
	routes    *segment
}

// Bucket is a pool of the upstream's quota.
type Bucket struct {
	Name   string
	Metric string       // the upstream's name for it: youtube.googleapis.com/default
	Daily  int64        // units that a new project is given each day
	Reset  quota.Window // the upstream's day
}

// Method is one priced operation.
type Method struct {
	ID     string // as in the discovery document: youtube.videos.list
	Verb   string // GET
	Path   string // /youtube/v3/captions/{id}; a name in braces stands for one segment
	Upload bool   // also reached below the upload paths
	OAuth  bool   // takes the token of a user in place of an API key
	// what one call takes, in the order of the table's buckets; at least one, each at least 1 unit
	Costs  []quota.Cost
	Source Source
	Note   string
}

// Source is where a figure comes from.
type Source struct {
	Status string // official, secondary or unverified
	Date   string // 2026-06-01 or 2026-11
	Text   string
}

// profile replaces the costs of some methods.
type profile struct{ prices map[string]price }

type price struct {
	costs  []quota.Cost
	source Source
}

// Default is the table that ships with the programs.
func Default() *Table { return shipped() }

var shipped = sync.OnceValue(func() *Table {
	t, err := Parse(quotabudget.Costs())
	if err != nil {
		panic(fmt.Sprintf("costs: the embedded costs.yaml: %v", err)) // a test reads it
	}
	return t
})

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
		m.Costs, m.Source = price.costs, price.source
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
		return Method{}, fmt.Errorf("%w: %q%s", quota.ErrUnpriced, spell.Clip(method),
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
		for _, c := range m.Costs {
			drawn[c.Bucket] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(t.buckets), func(b Bucket) bool { return !drawn[b.Name] })
}

// Reset is the upstream's day of a bucket; UTC's of one that the list does not have.
func (t *Table) Reset(bucket string) quota.Window {
	for _, b := range t.Buckets() {
		if b.Name == bucket {
			return b.Reset
		}
	}
	return quota.Window{Calendar: "day", Zone: time.UTC}
}

// BucketOfMetric is the bucket of the profile that the upstream calls by this metric, if there is
// one.
func (t *Table) BucketOfMetric(metric string) (Bucket, bool) {
	for _, b := range t.Buckets() {
		if b.Metric == metric {
			return b, true
		}
	}
	return Bucket{}, false
}

// defaultHeadroom is the share of a limit kept for people where nothing is configured, in percent.
const defaultHeadroom = 5

// DefaultLimits is what applies where nothing is configured: each bucket's daily units twice, in
// any 24 hours and in the upstream's calendar day, with a headroom of 5 %, rounded down so that a
// small limit is not all headroom.
func (t *Table) DefaultLimits() []quota.Limit {
	var limits []quota.Limit
	for _, b := range t.Buckets() {
		for _, w := range []quota.Window{quota.Sliding(24 * time.Hour), b.Reset} {
			limits = append(limits, quota.Limit{
				Bucket: b.Name, Units: b.Daily, Headroom: b.Daily * defaultHeadroom / 100,
				Window: w,
			})
		}
	}
	return limits
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// didYouMean is the hint at the one of the known that was meant, or "".
func didYouMean[V any](word string, known map[string]V) string {
	return spell.DidYouMean(word, sorted(known))
}
