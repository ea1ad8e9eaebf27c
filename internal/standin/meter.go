package standin

import (
	"maps"
	"strings"
	"time"
)

// cost is what a request takes from a bucket. What is held is checked against the limits and taken
// from them until the answer ends; what is billed is the truth.
type cost struct {
	bucket       string
	billed, held int64
	gate         bool // nothing is taken, but something must be left
}

// one is a cost that is known before.
func one(bucket string, units int64) cost {
	return cost{bucket: bucket, billed: units, held: units}
}

// under is a request that counts against a limit of how many may be under way.
func under(bucket string) cost { return cost{bucket: bucket, held: 1} }

// denial is why a request was refused.
type denial struct {
	bucket    string
	limit     Limit
	used      int64
	requested int64
	until     time.Time // when there would be room
}

// meter is the account of a stand-in.
type meter struct {
	limits  map[string][]Limit // by bucket, or by bucket and part
	refills bool
	rates   map[string][]*rate // by bucket and part
	units   map[string]int64   // what was billed
}

// ratesOf returns the rates of a bucket. A limit of a bucket holds for each of its parts; one that
// names the part takes its place.
func (m *meter) ratesOf(bucket string) []*rate {
	if rates, ok := m.rates[bucket]; ok {
		return rates
	}
	whole, _, _ := strings.Cut(bucket, "/")
	limits, ok := m.limits[bucket]
	if !ok {
		limits = m.limits[whole]
	}
	rates := []*rate{}
	for _, l := range limits {
		rates = append(rates, &rate{Limit: l, refills: m.refills})
	}
	m.rates[bucket] = rates
	return rates
}

// admit bills the costs and takes what is held, or takes nothing and says why not.
func (m *meter) admit(now time.Time, costs []cost) *denial {
	for _, c := range costs {
		for _, r := range m.ratesOf(c.bucket) {
			if r.turn(now); !r.fits(c.held) || c.gate && r.left() == 0 {
				return &denial{c.bucket, r.Limit, int64(r.used), c.held, r.when(now, c.held)}
			}
		}
	}
	for _, c := range costs {
		m.bill(c.bucket, c.billed)
		for _, r := range m.ratesOf(c.bucket) {
			r.used += float64(c.held)
		}
	}
	return nil
}

// settle gives back what was held and not billed.
func (m *meter) settle(now time.Time, costs []cost) {
	for _, c := range costs {
		for _, r := range m.ratesOf(c.bucket) {
			r.turn(now)
			r.used = max(0, r.used+float64(c.billed-c.held))
		}
	}
}

// spend bills a cost whether it fits or not.
func (m *meter) spend(now time.Time, c cost) {
	m.bill(c.bucket, c.billed)
	for _, r := range m.ratesOf(c.bucket) {
		if r.turn(now); r.fits(c.held) { // what is refused digs no hole
			r.used += float64(c.held)
		}
	}
}

func (m *meter) bill(bucket string, units int64) {
	if units > 0 {
		m.units[bucket] += units
	}
}

// change replaces the limits of a bucket and forgets what was used of it.
func (m *meter) change(bucket string, limits []Limit) {
	m.limits[bucket] = limits
	maps.DeleteFunc(m.rates, func(name string, _ []*rate) bool {
		return name == bucket || strings.HasPrefix(name, bucket+"/")
	})
}
