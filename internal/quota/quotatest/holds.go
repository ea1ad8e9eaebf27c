package quotatest

import (
	"context"
	"fmt"
	"slices"
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
		s.names = []string{
			"burst", "burst", "charge", "charge", "draw", "draw", "draw", "commit", "release",
			"cancel", "reserve", "move", "jump", "jump", "relimit", "compare",
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			s.step()
		}
		s.compareAll()
		s.checkWindows()
	})
}

// burst makes some reservations in one bucket, at times one that was there before.
func (s *story) burst() {
	b := s.bucket()
	for range rapid.IntRange(2, 12).Draw(s.t, "burst") {
		id := quota.ReservationID(b, s.id())
		if len(s.reserve) > 0 && rapid.IntRange(0, 7).Draw(s.t, "once more") == 7 {
			id = rapid.SampledFrom(s.reserve).Draw(s.t, "reservation")
		}
		if _, settled := s.settled[id]; settled {
			continue // its commit is answered as the first time
		}
		s.makeReservation(quota.Reserve{
			ID: id, Units: rapid.Int64Range(1, 6).Draw(s.t, "units"), TTL: s.ttl(),
		})
	}
}

// testManyHolds: what 1,500 reservations hold is known exactly, while they are open, while they
// expire one after the other, and when more have expired than one call may forget.
func testManyHolds(t *testing.T, h Harness) {
	var clock Clock
	m := many{t: t, model: &Model{Now: clock.Now}, ledger: h.Open(t), credential: newCredential()}
	m.limits = []quota.Limit{
		{Bucket: "default", Units: 5000, Window: quota.Sliding(hours(24))},
		{Bucket: "default", Units: 4950, Window: quota.Sliding(hours(48))},
	}
	setNow := func(after time.Duration) {
		h.SetNow(t, epoch.Add(after))
		clock.Set(t, epoch.Add(after))
	}
	setNow(0)
	var all sync.WaitGroup
	for worker := range 50 {
		all.Go(func() {
			for i := worker; i < 1500; i += 50 {
				m.reserve(i)
			}
		})
	}
	all.Wait()
	m.charge(1900)
	m.compare()
	setNow(hours(1) + 24*time.Minute + 59*time.Second)
	m.compare()
	setNow(hours(1) + 25*time.Minute)
	m.compare()
	setNow(hours(3))
	m.compare()
	for range 8 {
		m.charge(1)
		m.compare()
	}
}

// testHoldsInTurn: of 40 holds of one unit that expire one after the other, each frees one unit.
func testHoldsInTurn(t *testing.T, h Harness) {
	var clock Clock
	m := many{t: t, model: &Model{Now: clock.Now}, ledger: h.Open(t), credential: newCredential()}
	m.limits = []quota.Limit{{Bucket: "default", Units: 100, Window: quota.Sliding(hours(24))}}
	h.SetNow(t, epoch)
	clock.Set(t, epoch)
	for i := range 40 {
		m.reserve(3 * i) // one unit each
	}
	m.charge(60)
	for units := range int64(40) {
		m.charge(1 + units)
	}
}

// many is a ledger and a model that are told the same.
type many struct {
	t          *testing.T
	ledger     quota.Ledger
	model      *Model
	credential string
	limits     []quota.Limit
	serial     int
}

// reserve makes the nth reservation. It may come before or after others: the time stands still.
func (m *many) reserve(n int) {
	for _, l := range []quota.Ledger{m.model, m.ledger} {
		d, err := l.Reserve(context.Background(), quota.Reserve{
			Credential: m.credential, ID: fmt.Sprintf("default.r%04d", n), Units: int64(1 + n%3),
			TTL: time.Hour + time.Duration(n%50)*time.Minute, Limits: m.limits,
		})
		if err != nil || !d.Allowed {
			m.t.Errorf("reservation %d: %+v, %v", n, d, err)
		}
	}
}

func (m *many) charge(units int64) {
	m.t.Helper()
	m.serial++
	c := quota.Charge{
		Credential: m.credential, ID: fmt.Sprintf("e%d", m.serial), Limits: m.limits,
		Costs: []quota.Cost{{Bucket: "default", Units: units}},
	}
	want, _ := m.model.Charge(context.Background(), c)
	got, err := m.ledger.Charge(context.Background(), c)
	if err != nil || !sameDecision(got, want) {
		m.t.Errorf(
			"%s: charge of %d:\n got %+v, %v\nwant %+v",
			m.model.Now(),
			units,
			got,
			err,
			want,
		)
	}
}

// compare asks when charges of various sizes would fit, and looks at all that is held.
func (m *many) compare() {
	m.t.Helper()
	ctx := context.Background()
	for _, units := range []int64{1, 51, 150, 1000, 3000, 4950} {
		c := quota.Charge{
			Credential: m.credential, ID: "dry", Limits: m.limits, DryRun: true,
			Costs: []quota.Cost{{Bucket: "default", Units: units}},
		}
		want, _ := m.model.Charge(ctx, c)
		got, err := m.ledger.Charge(ctx, c)
		if err != nil || !sameDecision(got, want) {
			m.t.Errorf(
				"%s: %d units:\n got %+v, %v\nwant %+v",
				m.model.Now(),
				units,
				got,
				err,
				want,
			)
		}
	}
	want, _ := m.model.Usage(ctx, m.credential, m.limits)
	got, err := m.ledger.Usage(ctx, m.credential, m.limits)
	if text, wants := fmt.Sprint(utcUsage(got)), fmt.Sprint(utcUsage(want)); err != nil ||
		text != wants {
		m.t.Errorf("%s: usage\n got %s, %v\nwant %s", m.model.Now(), text, err, wants)
	}
	wantHeld, _ := m.model.Reservations(ctx, m.credential, "default")
	held, err := m.ledger.Reservations(ctx, m.credential, "default")
	if err != nil || !slices.Equal(utcReservations(held), utcReservations(wantHeld)) {
		m.t.Errorf("%s: %d reservations, %v; want %d", m.model.Now(), len(held), err, len(wantHeld))
	}
	checker, ok := m.ledger.(quota.Checker)
	if !ok {
		return
	}
	found, err := checker.CheckBucket(ctx, m.credential, "default", false)
	if err != nil || len(found) > 0 {
		m.t.Errorf("%s: found %+v, %v", m.model.Now(), found, err)
	}
}
