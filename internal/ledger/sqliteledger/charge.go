package sqliteledger

import (
	"context"

	"quotabudget/internal/quota"
)

// Charge implements quota.Ledger.
func (l *Ledger) Charge(ctx context.Context, c quota.Charge) (quota.Decision, error) {
	if err := c.Check(); err != nil {
		return quota.Refused(c.Costs, err)
	}
	return l.decide(ctx, c.Costs, func(s *session) (quota.Decision, error) { return s.charge(c) })
}

// charge decides on c and writes it if it is allowed. Everything is read before anything is
// written.
func (s *session) charge(c quota.Charge) (quota.Decision, error) {
	now := s.now()
	text := requestText("charge", c.Costs, c.Reservation)
	kept := keyed(c.Credential, c.Key, text, now, c.Limits)
	if d, known, err := s.recall(kept); known {
		return d, err
	}
	q, err := s.chargeAsks(c, now)
	if err == nil {
		err = c.CheckCost()
	}
	if err != nil {
		return quota.Decision{}, err
	}
	d := q.decision(now, c.Observe)
	if !d.Allowed || c.DryRun {
		return d, nil
	}
	d.Entry = c.ID
	s.writeCharge(c, q, d)
	s.remember(kept, d)
	return d, nil
}

// chargeAsks reads the buckets of c and finds the one time for all of them.
func (s *session) chargeAsks(c quota.Charge, now int64) (asks, error) {
	q := s.asks(c.Credential, c.Costs, quota.InMode(c.Limits, c.Observe), now)
	for i := range q.list {
		a := &q.list[i]
		a.manual, a.draws = c.Manual, c.Draws(a.name)
		if a.draws {
			if _, err := a.reservation(c.Reservation, q.n, a.units); err != nil {
				return q, err
			}
		}
	}
	return q, nil
}

func (s *session) writeCharge(c quota.Charge, q asks, d quota.Decision) {
	labels := c.Labels
	if d.Observed { // it tells the entry apart
		labels = labels.With(quota.Labels{quota.LabelDenied: d.Limit})
	}
	line := labels.Encode()
	for _, a := range q.list {
		a.keep(c.Limits)
		a.record(q.n, a.units, c.ID, line)
		a.trim(q.n)
		if a.draws {
			s.change("reservation_draw", a.id, c.Reservation, a.units)
			delete(s.kept.made, madeName{a.id, c.Reservation})
			a.bucket.held, a.atMost = a.bucket.held-a.units, a.atMost-a.units
		}
	}
}
