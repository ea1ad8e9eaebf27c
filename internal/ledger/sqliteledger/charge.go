package sqliteledger

import (
	"context"
	"errors"

	"quotabudget/internal/quota"
)

// Charge implements quota.Ledger.
func (l *Ledger) Charge(ctx context.Context, c quota.Charge) (quota.Decision, error) {
	if err := c.Check(); err != nil {
		return never(c.Costs, err), err
	}
	d, err := l.decide(ctx, func(s *session) (quota.Decision, error) { return s.charge(c) })
	if err != nil {
		return never(c.Costs, err), err
	}
	return d, nil
}

// decide is update for what answers with a decision.
func (l *Ledger) decide(ctx context.Context, do func(*session) (quota.Decision, error)) (quota.Decision, error) {
	var d quota.Decision
	err := l.update(ctx, func(s *session) (err error) {
		d, err = do(s)
		return err
	})
	if err != nil {
		return quota.Decision{}, err
	}
	return d, nil
}

// never is the decision that goes with an error of Check.
func never(costs []quota.Cost, err error) quota.Decision {
	var exceeds *quota.CostExceedsLimitError
	if errors.As(err, &exceeds) {
		return quota.NeverDecision(costs, exceeds)
	}
	return quota.Decision{}
}

// charge decides on c and writes it if it is allowed. Everything is read before anything is
// written.
func (s *session) charge(c quota.Charge) (quota.Decision, error) {
	now := s.now()
	kept := keyed(c.Credential, c.Key, requestText("charge", c.Costs, c.Reservation), now, c.Limits)
	if d, known, err := s.recall(kept); known || err != nil {
		return d, err
	}
	q, err := s.chargeAsks(c, now)
	if err == nil {
		err = c.CheckCost()
	}
	if err != nil {
		return quota.Decision{}, err
	}
	d := q.decision(q.judge(), now, c.Observe)
	if !d.Allowed || c.DryRun || s.broken != nil {
		return d, s.broken
	}
	d.Entry = c.ID
	return d, s.writeCharge(c, q, d, kept)
}

// chargeAsks reads the buckets of c and finds the one time for all of them.
func (s *session) chargeAsks(c quota.Charge, now int64) (asks, error) {
	q := asks{n: now}
	for _, cost := range c.Costs {
		b, err := s.bucket(c.Credential, cost.Bucket)
		if err != nil {
			return q, err
		}
		q.n = moment(q.n, b)
		q.list = append(q.list, ask{bucket: b, units: cost.Units, limits: limitsOf(cost.Bucket, c.Limits), manual: c.Manual})
	}
	for i := range q.list {
		a := &q.list[i]
		if a.draws = draws(c, a.name); a.draws {
			if err := a.mayDraw(c.Reservation, q.n); err != nil {
				return q, err
			}
		}
		var err error
		if a.held, err = a.live(q.n); err != nil {
			return q, err
		}
	}
	return q, nil
}

// draws reports whether c takes the bucket's units from its reservation.
func draws(c quota.Charge, bucket string) bool {
	of, _, err := quota.ParseReservation(c.Reservation)
	return err == nil && of == bucket
}

func (a ask) mayDraw(reservation string, n int64) error {
	r, live, err := a.reservation(reservation, n)
	switch {
	case err != nil:
		return err
	case !live:
		return noReservation(reservation)
	case a.units > r.left:
		return short(r, a.units)
	}
	return nil
}

func (s *session) writeCharge(c quota.Charge, q asks, d quota.Decision, kept receipt) error {
	labels := denied(c.Labels, d)
	for _, a := range q.list {
		a.keep(c.Limits)
		if err := a.record(q.n, a.units, c.ID, labels); err != nil {
			return err
		}
		if err := a.trim(q.n); err != nil {
			return err
		}
		if !a.draws {
			continue
		}
		if err := s.change("reservation_draw", a.id, c.Reservation, a.units); err != nil {
			return err
		}
	}
	return s.remember(kept, d)
}
