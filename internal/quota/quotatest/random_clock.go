package quotatest

import (
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
)

// move moves the clock, mostly on, at times back.
func (s *story) move() {
	steps := []time.Duration{
		0, time.Microsecond, time.Millisecond, time.Second, time.Minute, 17 * time.Minute,
		hours(1), hours(5), hours(24), -time.Microsecond, -time.Second, -time.Hour,
	}
	to := s.clock.Now().Add(rapid.SampledFrom(steps).Draw(s.t, "move"))
	if to.Before(s.clock.Now()) {
		s.back(to)
		return
	}
	s.forward(to)
}

// jumpTo moves the clock to the very edge of something: where a hold or suspension ends or a charge
// leaves its window.
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

// back does not cross the end of a hold or suspension, because a ledger may forget what has lapsed,
// nor leave the day.
func (s *story) back(to time.Time) {
	if to.Before(s.floor) {
		to = s.floor
	}
	if to.Before(s.clock.Now()) {
		s.setNow(to)
	}
}

func (s *story) touchAll() {
	s.idle = 0
	var costs []quota.Cost
	for _, b := range storyBuckets {
		costs = append(costs, quota.Cost{Bucket: b, Units: 1})
	}
	s.chargeBoth(quota.Charge{Credential: s.credential, ID: s.id(), Costs: costs,
		Limits: s.counting(costs), Unlimited: true, Observe: true})
}
