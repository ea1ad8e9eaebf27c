package quotatest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
)

// testRandomHolds is testRandom with many reservations, of which many expire at once, and not every
// one after the one before.
func testRandomHolds(t *testing.T, h Harness) {
	l := h.Open(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := newStory(t, rt, h, l)
		s.many = true
		for _, b := range storyBuckets {
			s.limits[b] = s.drawLimits(b)
		}
		s.play(40, []string{
			"burst", "burst", "charge", "charge", "draw", "draw", "draw", "commit", "release",
			"extend", "extend", "cancel", "reserve", "move", "jump", "jump", "relimit", "compare",
		})
	})
}

// burst makes some reservations in one bucket, at times one that was there before.
func (s *story) burst() {
	b := s.bucket()
	for range rapid.IntRange(2, 12).Draw(s.t, "burst") {
		id := quota.ReservationID(s.id(), b)
		if len(s.reserve) > 0 && rapid.IntRange(0, 7).Draw(s.t, "once more") == 7 {
			id = rapid.SampledFrom(s.reserve).Draw(s.t, "reservation")
		}
		if _, settled := s.settled[id]; settled {
			continue // its commit is answered as the first time
		}
		s.makeReservation(id, quota.Reserve{TTL: s.ttl()}, 6)
	}
}

// testManyHolds: what 1,500 reservations hold is known exactly, while they are open, while they
// expire one after the other, and when more have expired than one call may forget.
func testManyHolds(t *testing.T, h Harness) {
	p := newPair(t, t, h, h.Open(t))
	p.limits["default"] = []quota.Limit{within(5000, hours(24)), within(4950, hours(48))}
	var all sync.WaitGroup
	for worker := range 50 {
		all.Go(func() {
			for i := worker; i < 1500; i += 50 {
				p.hold(i)
			}
		})
	}
	all.Wait()
	p.chargeUnits(1900, false)
	compare := func(after time.Duration) {
		p.setNow(epoch.Add(after))
		for _, units := range []int64{1, 51, 150, 1000, 3000, 4950} {
			p.chargeUnits(units, true)
		}
		p.compareBucket("default")
	}
	compare(0)
	compare(hours(1) + 24*time.Minute + 59*time.Second)
	compare(hours(1) + 25*time.Minute)
	compare(hours(3))
	for range 8 {
		p.chargeUnits(1, false)
		compare(hours(3))
	}
}

// testHoldsInTurn: of 40 holds of one unit that expire one after the other, each frees one unit.
func testHoldsInTurn(t *testing.T, h Harness) {
	p := newPair(t, t, h, h.Open(t))
	p.limits["default"] = []quota.Limit{dayLimit}
	for i := range 40 {
		p.hold(3 * i) // one unit each
	}
	p.chargeUnits(60, false)
	for units := range int64(40) {
		p.chargeUnits(1+units, false)
	}
}

// testExtendedForLong: what was extended is held to its end, though nobody looks meanwhile.
func testExtendedForLong(t *testing.T, h Harness) {
	s := newSubject(t, h, dayLimit)
	s.reserve("default.r", 60, time.Minute)
	until, err := s.ledger.Extend(t.Context(), s.newExtend("default.r", hours(500)))
	if err != nil || !until.Equal(epoch.Add(hours(500))) {
		t.Errorf("until %s, %v", until, err)
	}
	s.at(hours(500) - time.Microsecond)
	if d := s.ask(s.dry(41)); d.Allowed {
		t.Errorf("41 units beside 60 held of 100: %+v", d)
	}
	s.at(hours(500))
	s.charge(100)
}

// hold makes the nth reservation. It may come before or after others: the time does not move.
func (p *pair) hold(n int) {
	for _, l := range []quota.Ledger{p.model, p.ledger} {
		d, err := l.Reserve(p.outer.Context(), quota.Reserve{
			Credential: p.credential, ID: fmt.Sprintf("default.r%04d", n),
			Costs:  []quota.Cost{{Bucket: "default", Units: int64(1 + n%3)}},
			TTL:    time.Hour + time.Duration(n%50)*time.Minute,
			Limits: p.limits["default"],
		})
		if err != nil || !d.Allowed {
			p.tb.Errorf("reservation %d: %+v, %v", n, d, err)
		}
	}
}

func (p *pair) chargeUnits(units int64, dry bool) {
	p.tb.Helper()
	p.compareCharge(quota.Charge{
		Credential: p.credential, ID: p.id(), Limits: p.limits["default"], DryRun: dry,
		Costs: []quota.Cost{{Bucket: "default", Units: units}},
	})
}
