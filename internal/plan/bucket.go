package plan

import (
	"math"
	"slices"
	"time"

	"quotabudget/internal/ledger/memstore"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// bucket is a bucket that pages are charged to, with its limits. Limits on what is held at once do
// not apply, because runs take no time.
type bucket struct {
	*memstore.Bucket
	limits []quota.Limit // Plan.Limits, and then Plan.Throttles
	firm   int           // number of Plan.Limits among them
	paces  []quota.Limit
}

func newBucket(p *Plan, name string) *bucket {
	b := &bucket{Bucket: memstore.NewBucket("", name)}
	b.limits = append(b.limits, limitsOf(name, p.Limits)...)
	b.firm = len(b.limits)
	b.limits = append(b.limits, limitsOf(name, p.Throttles)...)
	b.paces = limitsOf(name, p.Paces)
	for _, standing := range p.Before {
		if standing.Name == name {
			b.load(standing)
		}
	}
	return b
}

func limitsOf(bucket string, limits []quota.Limit) []quota.Limit {
	return slices.DeleteFunc(slices.Clone(limits),
		func(l quota.Limit) bool { return l.Bucket != bucket || l.Window.Concurrent })
}

func (b *bucket) load(s Standing) {
	for _, e := range s.Spent {
		b.Add(e.At.UnixMicro(), e.Units)
	}
	for _, r := range s.Reservations {
		if r.Left+r.Drawn > 0 {
			b.Holds = append(b.Holds, quota.Hold{ID: r.ID, Units: r.Left + r.Drawn, Most: r.Most,
				Drawn: r.Drawn, Created: r.CreatedAt.UnixMicro(), Expires: r.ExpiresAt.UnixMicro(),
				Lapse: r.Lapse})
		}
	}
	if !s.SuspendedUntil.IsZero() {
		b.State.SuspendedUntil = s.SuspendedUntil.UnixMicro()
	}
	if !s.ResetAt.IsZero() {
		b.State.ResetAt = s.ResetAt.UnixMicro()
	}
}

// expiring returns the holds that are open at a moment.
func (b *bucket) expiring(at int64) (holds []quota.Expiring) {
	for _, h := range b.Holds {
		if h.Expires > at && h.Left() > 0 {
			holds = append(holds, quota.Expiring{Units: h.Left(), ExpiresAt: h.Expires})
		}
	}
	return holds
}

// take charges units regardless of limits.
func (b *bucket) take(at, units int64) {
	if units > 0 {
		memstore.Charge(at, []*memstore.Bucket{b.Bucket}, quota.Charge{Observe: true, NewValues: true,
			Limits: b.limits, Costs: []quota.Cost{{Bucket: b.Name, Units: units}}})
	}
}

// Windows returns the limits, throttles and paces, bucket by bucket in the order of the prices.
func (g *Play) Windows() (all []quota.Limit) {
	for _, b := range g.buckets {
		all = append(append(all, b.limits...), b.paces...)
	}
	return all
}

// Used returns the units used and held in each of Windows at a moment.
func (g *Play) Used(at int64, into []int64) []int64 {
	into = into[:0]
	for _, b := range g.buckets {
		for _, l := range b.limits {
			into = append(into, b.Taken(l, at))
		}
		for _, l := range b.paces {
			into = append(into, b.Taken(l, at))
		}
	}
	return into
}

// Room returns the units the first bucket has left at a moment, and the limit that leaves the
// least. It ignores suspensions, throttles and paces, and is negative if unscheduled charges use
// the headroom.
func (g *Play) Room(at int64) (room int64, limit string) {
	b := g.buckets[0]
	room = math.MaxInt64 / 4
	for _, l := range b.limits[:b.firm] {
		if left := l.Cap(false) - b.Taken(l, at); left < room {
			room, limit = left, l.Name()
		}
	}
	return room, limit
}

// Frees returns the first time from a moment on at which the first bucket has a free unit, if
// nothing is charged; zero if there is none.
func (g *Play) Frees(at int64) time.Time {
	b := g.buckets[0]
	d, _ := memstore.Charge(at, []*memstore.Bucket{b.Bucket}, quota.Charge{DryRun: true, NewValues: true,
		Limits: b.limits[:b.firm], Costs: []quota.Cost{{Bucket: b.Name, Units: 1}}})
	if d.Allowed {
		return moment(at)
	}
	return d.RetryAt
}

// Take charges the first bucket outside of any lane, regardless of limits.
func (g *Play) Take(at, units int64) {
	g.buckets[0].take(at, units)
	if g.buckets[0] == g.shared {
		g.book.Charge(share.Others, at, units)
	}
}
