package ingest

import (
	"context"
	"time"

	"quotabudget/internal/quota"
)

// Outcome is the outcome of a region or of a whole sweep.
type Outcome string

// Outcomes of a region. Complete, Partial and Failed are outcomes of a sweep too.
const (
	Complete    Outcome = "complete"    // the whole chart is stored and current
	Partial     Outcome = "partial"     // some pages are stored; a later sweep resumes the chart
	Skipped     Outcome = "skipped"     // not visited, because the sweep ended before
	Failed      Outcome = "failed"      // an error of this region
	Unavailable Outcome = "unavailable" // the upstream has no chart of it
	Exhausted   Outcome = "exhausted"   // of a sweep: ended by a denial
)

// Summary reports what a sweep did, what it left out, and when to run again.
type Summary struct {
	Outcome    Outcome
	Units      map[string]int64 // units charged, by bucket
	RetryAt    time.Time        // when an exhausted sweep can be resumed; zero otherwise
	RetryAfter time.Duration    // from its end to RetryAt, by the ledger's clock
	Limit      string           // the limit that denied it
	Regions    []Region         // in the order of the visits
}

// Region reports what a sweep did in one region.
type Region struct {
	Region  string
	Outcome Outcome
	Pages   int // stored pages of the chart, including those of an earlier run
	Videos  int // videos on these pages
	Units   int64
	Known   bool // an earlier answer still holds, so the upstream was not asked
	err     error
}

// Err returns why the region is not complete. It is nil for a skipped region.
func (r Region) Err() error { return r.err }

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

// opensAt returns when the last suspended bucket opens again, and the time until then. It returns
// now if all are open, because the upstream's answer was about a day that has ended.
func (s *Sweep) opensAt() (at time.Time, after time.Duration) {
	ctx, done := context.WithTimeout(context.Background(), DefaultGrace)
	defer done()
	usage, err := s.Budget.Usage(ctx)
	if err != nil {
		now := s.Now()
		_, reset := s.Day.Bounds(now)
		s.Log.Warn("cannot read when the bucket opens again; assuming the upstream's reset",
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
