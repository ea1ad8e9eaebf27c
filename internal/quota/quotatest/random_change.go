package quotatest

import (
	"context"
	"slices"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
)

func (s *story) commit() {
	c := quota.Settle{Credential: s.credential, ID: s.id(), Labels: quota.Labels{"job": "s"}}
	switch {
	case len(s.commits) > 0 && !s.rarely("another", 4):
		c = rapid.SampledFrom(s.commits).Draw(s.t, "commit")
	case len(s.reserve) > 0:
		c.Reservation = rapid.SampledFrom(s.reserve).Draw(s.t, "reservation")
		c.Within = rapid.Bool().Draw(s.t, "within")
		c.Once = rapid.Bool().Draw(s.t, "once")
		for _, b := range bucketsOf(c.Reservation) {
			units := rapid.Int64Range(quota.AllUnits, 24).Draw(s.t, "units")
			c.Costs = append(c.Costs, quota.Cost{Bucket: b, Units: units})
		}
		if rapid.Bool().Draw(s.t, "what remains") {
			c.Limits = s.limitsOf(c.Costs, false)
		}
		c.Costs = c.Costs[rapid.IntRange(0, len(c.Costs)).Draw(s.t, "not named"):]
	default:
		return
	}
	if s.forgotten(c.Reservation) {
		return
	}
	d, _ := both(s, s.ledger.Settle, s.model.Settle, c)
	if d.Allowed && !d.Replayed {
		s.commits = append(s.commits, c)
		s.known[c.Reservation] = d.At
	}
}

func (s *story) extend() {
	if len(s.reserve) == 0 {
		return
	}
	e := quota.Extend{Credential: s.credential, TTL: s.ttl(),
		Reservation: rapid.SampledFrom(s.reserve).Draw(s.t, "reservation")}
	until, err := both(s, s.ledger.Extend, s.model.Extend, e)
	if err == nil {
		s.known[e.Reservation] = until
		s.ends = append(s.ends, until)
	}
}

func (s *story) release() {
	if len(s.reserve) == 0 {
		return
	}
	id := rapid.SampledFrom(s.reserve).Draw(s.t, "reservation")
	late := rapid.Bool().Draw(s.t, "late")
	if late && s.forgotten(id) {
		return
	}
	both(s, s.ledger.Release, s.model.Release, quota.Release{Credential: s.credential,
		Reservation: id, Late: late})
}

// forgotten reports whether the ledger may have deleted the answer to a settlement at the same
// microsecond as another, or the entry of a lapse.
func (s *story) forgotten(reservation string) bool {
	return s.known[reservation].Before(s.clock.Now().Add(3 * time.Hour).Add(-quota.Retention))
}

// cancel cancels a charge that is recent enough that the ledger must still have it.
func (s *story) cancel() {
	if len(s.charges) == 0 {
		return
	}
	c := rapid.SampledFrom(s.charges).Draw(s.t, "charge")
	if s.latest.Sub(c.decision.At) < quota.Retention-time.Second {
		both(s, func(ctx context.Context, c made) (any, error) {
			return nil, s.ledger.Cancel(ctx, c.charge, c.decision)
		}, s.model.Cancel, c)
	}
}

func (s *story) suspend() {
	suspension := quota.Suspension{Credential: s.credential, Bucket: s.bucket()}
	if rapid.Bool().Draw(s.t, "close") {
		later := rapid.Int64Range(-1, hours(3).Microseconds()).Draw(s.t, "µs")
		suspension.Until = s.clock.Now().Add(time.Duration(later) * time.Microsecond)
		s.ends = append(s.ends, suspension.Until)
	}
	both(s, func(ctx context.Context, suspension quota.Suspension) (any, error) {
		return nil, s.ledger.Suspend(ctx, suspension)
	}, s.model.Suspend, suspension)
}

// learn reports the units left under one of the limits, and sometimes the end of its window, as an
// upstream does.
func (s *story) learn() {
	limits := s.limits[s.bucket()]
	l := quota.Learn{
		Credential: s.credential, Limit: rapid.SampledFrom(limits).Draw(s.t, "limit"),
		Remaining: rapid.Int64Range(-1, 20).Draw(s.t, "remaining"),
	}
	seconds := func(least, most int64, what string) time.Time {
		after := rapid.Int64Range(least, most).Draw(s.t, what)
		return s.clock.Now().Add(time.Duration(after) * time.Second)
	}
	if rapid.Bool().Draw(s.t, "asked") {
		l.AskedAt = seconds(-100, 1, "asked at")
	}
	if rapid.Bool().Draw(s.t, "reset") {
		l.Reset = seconds(-10, 4000, "ends")
		s.ends = append(s.ends, l.Reset)
	}
	both(s, s.ledger.Learn, s.model.Learn, l)
}

// adjust corrects the usage in a span in which no ledger has deleted entries yet.
func (s *story) adjust() {
	now := s.clock.Now()
	ago := func(what string, most time.Duration) time.Time {
		back := rapid.SampledFrom([]time.Duration{0, time.Microsecond, time.Millisecond,
			time.Minute, time.Hour, hours(30)}).Draw(s.t, what)
		return now.Add(-min(back, most))
	}
	a := quota.Adjust{
		Credential: s.credential, ID: s.id(), Key: s.key(), Bucket: s.bucket(),
		Units:  rapid.Int64Range(-30, 12).Draw(s.t, "by"),
		After:  ago("after", hours(30)).Add(-time.Minute),
		Labels: quota.Labels{"by": "me", "run": "r"}, DryRun: s.rarely("dry run", 6),
	}
	if rapid.Bool().Draw(s.t, "until") {
		a.Until = ago("until", now.Sub(a.After)-time.Microsecond)
	}
	if a.Limits = s.limits[a.Bucket]; a.Units == 0 {
		a.Units = 1
	}
	if rapid.Bool().Draw(s.t, "was") {
		buckets, n := s.model.at(s.model.now(), a.Bucket)
		after, until := a.Span(n)
		was := buckets[0].sum(after, until)
		if was += rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(s.t, "wrong"); was >= 0 {
			a.Was = &was
		}
	}
	d, _ := both(s, s.ledger.Adjust, s.model.Adjust, a)
	if d.Entry != "" && !d.Replayed {
		s.proofs = slices.DeleteFunc(s.proofs, func(p made) bool {
			return slices.Contains(names(p.charge.Costs), a.Bucket) && !p.decision.At.Before(d.At)
		})
	}
}

// move moves the clock, usually forwards and sometimes back, but not back across the end of a hold
// or suspension, because a ledger may have deleted those that lapsed.
func (s *story) move() {
	steps := []time.Duration{
		0, time.Microsecond, time.Millisecond, time.Second, time.Minute, 17 * time.Minute,
		hours(1), hours(5), hours(24), -time.Microsecond, -time.Second, -time.Hour,
	}
	to := s.clock.Now().Add(rapid.SampledFrom(steps).Draw(s.t, "move"))
	switch {
	case !to.Before(s.clock.Now()):
		s.forward(to)
	case to.After(s.floor):
		s.setNow(to)
	}
}

// jumpTo moves the clock to an exact boundary: a reset, the end of a hold or suspension, or the
// time at which a charge leaves its window.
func (s *story) jumpTo() {
	edges := []time.Time{s.clock.Now()}
	for _, e := range s.ends {
		edges = append(edges, e, e.Add(-time.Microsecond))
	}
	for _, c := range s.charges {
		for _, l := range c.charge.Limits {
			if end := c.decision.At.Add(l.Window.Length); !l.Window.IsCalendar() {
				edges = append(edges, end, end.Add(-time.Microsecond))
			}
		}
	}
	to := rapid.SampledFrom(edges).Draw(s.t, "edge")
	if to.After(s.clock.Now()) {
		s.forward(to)
	}
}

func (s *story) forward(to time.Time) {
	s.idle += to.Sub(s.clock.Now())
	s.setNow(to)
	for _, e := range s.ends {
		if !e.After(to) && e.After(s.floor) {
			s.floor = e
		}
	}
}

func (s *story) touchAll() {
	s.idle = 0
	c := quota.Charge{Credential: s.credential, ID: s.id(), Unlimited: true, Observe: true}
	for _, b := range storyBuckets {
		c.Costs = append(c.Costs, quota.Cost{Bucket: b, Units: 1})
	}
	c.Limits = s.limitsOf(c.Costs, true)
	d, _ := s.decide(Call{Charge: c})
	s.asked(Call{Charge: c}, d)
}
