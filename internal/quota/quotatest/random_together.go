package quotatest

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
)

// together has many callers ask of the same buckets at once, and compares each answer with the
// model's, asked in the order in which the ledger decided. Callers may have the same idempotency
// key, draw on the same reservation, or make one of the same ID.
func (s *story) together() {
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(storyBuckets), 1, 2, rapid.ID[string])
	buckets := some.Draw(s.t, "buckets")
	size := rapid.SampledFrom([]int{2, 3, 4, 5, 7, 2, 3, 4, 5, 16}).Draw(s.t, "callers")
	calls := make([]Call, size)
	for i := range calls {
		calls[i] = s.newCall(buckets)
	}
	answers, order := s.askAll(calls)
	if !slices.Equal(slices.Sorted(slices.Values(order)), numbered(size)) {
		s.t.Fatalf("%d calls were decided in the order %v", size, order)
	}
	for nth, i := range order {
		want := calls[i].ask(s.model)
		got := answers[i]
		what := fmt.Sprintf("call %d of %d together, decided as number %d: %+v", i, size, nth,
			calls[i])
		s.compareDecision(what, got.Decision, want.Decision, got.Err, want.Err)
		if calls[i].Reserve != nil {
			s.reserved(*calls[i].Reserve, want.Decision)
		} else {
			s.charged(calls[i].Charge, got.Decision)
		}
	}
}

func (s *story) askAll(calls []Call) (answers []Answer, order []int) {
	if s.h.Together != nil {
		return s.h.Together(s.outer, s.ledger, calls)
	}
	for _, c := range calls {
		answers = append(answers, c.ask(s.ledger))
	}
	return answers, numbered(len(calls))
}

func numbered(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// newCall is a charge, a draw or a reservation in the buckets.
func (s *story) newCall(buckets []string) Call {
	if rapid.IntRange(0, 3).Draw(s.t, "reserve") == 3 {
		id := s.id()
		if rapid.IntRange(0, 9).Draw(s.t, "same ID as the last one") == 9 {
			id = fmt.Sprintf("e%04d", s.serial-1)
		}
		r := s.reservation(quota.ReservationID(id, buckets...), s.newReserve(), 9)
		return Call{Reserve: &r}
	}
	c := s.newCharge()
	c.Costs = nil
	for _, b := range buckets {
		units := rapid.Int64Range(1, 12).Draw(s.t, "cost")
		c.Costs = append(c.Costs, quota.Cost{Bucket: b, Units: units})
	}
	c.Limits = s.counting(c.Costs)
	if len(s.reserve) > 0 && rapid.IntRange(0, 3).Draw(s.t, "draw") == 3 {
		c.Reservation = rapid.SampledFrom(s.reserve).Draw(s.t, "reservation")
	}
	return Call{Charge: c}
}
