package standin

import (
	"maps"
	"strings"
	"time"
)

// cost is the cost of a request in a bucket. The held units must fit under the limits, and count
// until the response ends; from then on the billed units count.
type cost struct {
	bucket       string
	billed, held int64
	gate         bool // the bucket must not be empty, even if the cost is 0
}

// one returns a cost that is known before the response.
func one(bucket string, units int64) cost {
	return cost{bucket: bucket, billed: units, held: units}
}

// under returns the cost of a request under a limit on concurrent requests.
func under(bucket string) cost { return cost{bucket: bucket, held: 1} }

// denial is the reason why a request is refused.
type denial struct {
	bucket    string
	limit     Limit
	used      int64
	requested int64
	until     time.Time // time from which the request would fit
}

// meter is the account of a stand-in.
type meter struct {
	limits  map[string][]Limit // by bucket, or by bucket and part
	refills bool
	rates   map[string][]*rate // by bucket and part
	units   map[string]int64   // billed units
}

// ratesOf returns the rates of a bucket. Each part of a bucket has the bucket's limits, unless
// limits name the part.
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

// admit bills the costs and holds their units. If one does not fit, it changes nothing and returns
// the reason.
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

// settle replaces the held units with the billed ones.
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
		if r.turn(now); r.fits(c.held) { // a use over the limit does not block later requests
			r.used += float64(c.held)
		}
	}
}

func (m *meter) bill(bucket string, units int64) {
	if units > 0 {
		m.units[bucket] += units
	}
}

// change replaces the limits of a bucket and resets their use.
func (m *meter) change(bucket string, limits []Limit) {
	m.limits[bucket] = limits
	maps.DeleteFunc(m.rates, func(name string, _ []*rate) bool {
		return name == bucket || strings.HasPrefix(name, bucket+"/")
	})
}
