package ingest

import (
	"context"
	"time"

	"quotabudget/internal/quota"
)

// Outcome is what a region or a whole sweep came to.
type Outcome string

// Outcomes of a region. Complete, Partial and Failed are also those of a sweep.
const (
	Complete    Outcome = "complete"    // the chart is whole and the current one
	Partial     Outcome = "partial"     // some pages were stored, to be resumed
	Skipped     Outcome = "skipped"     // not visited, because the sweep ended before
	Failed      Outcome = "failed"      // an error of this region
	Unavailable Outcome = "unavailable" // the upstream has no chart for it
	Exhausted   Outcome = "exhausted"   // of a sweep: ended by a denial
)

// Summary says what a sweep did, what it did not, and when to come back.
type Summary struct {
	Outcome    Outcome
	Units      map[string]int64 // charged, by bucket
	RetryAt    time.Time        // when an exhausted sweep can be resumed; zero otherwise
	RetryAfter time.Duration    // from its end to RetryAt by the ledger's clock, not the host's
	Limit      string           // what denied it
	Regions    []Region         // in the order of the visit
}

// Region is what a sweep did in one region.
type Region struct {
	Region  string
	Outcome Outcome
	Pages   int // of the chart that are stored, from earlier runs too when it was resumed
	Videos  int // on them
	Units   int64
	Known   bool // by an earlier answer of the upstream: it was not asked now
	err     error
}

// Err is why the region is not complete; nil for one that was left out.
func (r Region) Err() error { return r.err }

// summarize adds up what the readers did.
func (s *Sweep) summarize(order []*visit, q *queue) Summary {
	sum := Summary{Units: q.units}
	count := make(map[Outcome]int)
	for _, v := range order {
		sum.Regions = append(sum.Regions, v.Region)
		count[v.Outcome]++
	}
	switch denied := q.denied(); {
	case denied != nil:
		sum.Outcome, sum.Limit = Exhausted, denied.Limit
		sum.RetryAt, sum.RetryAfter = denied.RetryAt, denied.RetryAfter()
	case q.closed():
		sum.Outcome, sum.Limit = Exhausted, quota.Suspended
		sum.RetryAt, sum.RetryAfter = s.opensAt()
	case count[Complete]+count[Unavailable] == len(order):
		sum.Outcome = Complete
	case count[Complete]+count[Partial] == 0:
		sum.Outcome = Failed
	default:
		sum.Outcome = Partial
	}
	return sum
}

// opensAt is when the last of the suspended buckets opens again, and how long that is from now: at
// once, when all are open, because the upstream spoke of a day that has ended.
func (s *Sweep) opensAt() (at time.Time, after time.Duration) {
	ctx, done := context.WithTimeout(context.Background(), DefaultGrace)
	defer done()
	usage, err := s.Budget.Usage(ctx)
	if err != nil {
		now := s.Now()
		_, reset := s.Day.Bounds(now)
		s.Log.Warn("cannot ask when the bucket opens again: assuming the upstream's reset",
			"reset", reset, "error", err)
		return reset, reset.Sub(now)
	}
	at = usage.At
	for _, b := range usage.Buckets {
		if b.SuspendedUntil.After(at) {
			at = b.SuspendedUntil
		}
	}
	return at, at.Sub(usage.At)
}
