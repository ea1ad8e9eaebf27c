package meter

import (
	"sync"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// unused adds up, by bucket, what calls could have taken and did not. Some upstreams count the most
// that each call in flight can take until its answer has ended, and say in a header what that
// leaves. The ledger knows of the calls that are in flight when it learns of that, but no more of
// those that ended meanwhile: what these did not take, was never spent.
type unused struct {
	mu    sync.Mutex
	units map[string]int64
}

// of is what it is by now, for the buckets of the costs.
func (u *unused) of(all []quota.Cost) map[string]int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	units := make(map[string]int64, len(all))
	for _, c := range all {
		units[c.Bucket] = u.units[c.Bucket]
	}
	return units
}

// add counts a call that may take what was quoted, and took less.
func (u *unused) add(quoted, took []quota.Cost) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.units == nil || len(u.units) > maxSamples { // somebody makes up names of models
		u.units = map[string]int64{}
	}
	for i, c := range quoted { // in the same order
		u.units[c.Bucket] += max(0, max(c.Most, c.Units)-took[i].Units)
	}
}

// withUnused adds to what headers say is left what calls did not take that have ended since this
// one began, itself among them.
func (e *exchange) withUnused(lessons []costs.Lesson) []costs.Lesson {
	var all []costs.Lesson
	now := e.gate.unused.of(e.quote.Costs)
	for _, l := range lessons {
		if before, ok := e.unused[l.Bucket]; ok && l.Header && l.Remaining >= 0 {
			l.Remaining = min(quota.MaxUnits, l.Remaining+max(0, now[l.Bucket]-before))
		}
		all = append(all, l)
	}
	return all
}
