package redisledger

import (
	"fmt"
	"slices"

	"quotabudget/internal/quota"
)

// decision reads the reply of charge.lua.
func (l *Ledger) decision(r *request, reply reply) (quota.Decision, error) {
	numbers := 5 + len(r.costs)
	if r.op == "reserve" {
		numbers++
	}
	switch status := reply.status(); status {
	case replayed:
		return r.replayed(reply.text(), numbers)
	case denied:
		numbers = 5 + len(r.costs)
		fallthrough
	case allowed, observed:
		ints, err := reply.ints(numbers)
		if err != nil {
			return quota.Decision{}, err
		}
		l.learn(ints[1])
		id := r.id
		if r.dryRun {
			id = "" // nothing was written under it
		}
		return r.decided(id, ints), nil
	case never:
		ints, err := reply.ints(2)
		limits := slices.Concat(r.limits...)
		if err != nil || ints[1] < 1 || int(ints[1]) > len(limits) {
			return quota.Decision{}, reply.unknown()
		}
		limit := limits[ints[1]-1]
		return quota.Refused(r.costs, &quota.CostExceedsLimitError{
			Limit: limit, Units: quota.UnitsOf(r.costs)[limit.Bucket], Cap: limit.Cap(r.manual)})
	default:
		return quota.Decision{}, r.refusal(status, reply)
	}
}

// replayed reads the answer that was given to the idempotency key before.
func (r *request) replayed(text string, numbers int) (quota.Decision, error) {
	kept, err := parseAnswer(text, r.key, numbers)
	if err != nil {
		return quota.Decision{}, err
	}
	if !kept.order(r.costs) {
		return quota.Decision{}, damagedAnswer(r.key)
	}
	d := r.decided(kept.id, kept.ints)
	d.Limit, d.Replayed = kept.limit, true
	return d, nil
}

// refusal is the error for a status at which a script decided nothing.
func (r *request) refusal(status int64, reply reply) error {
	switch status {
	case stale:
		return fmt.Errorf("%w: its clock moved during %d attempts", quota.ErrUnreachable, maxAsks)
	case reused:
		return fmt.Errorf("%w: %q, with another call or other costs", quota.ErrKeyReused, r.userKey)
	case unknown:
		return fmt.Errorf("%s: %w", r.reservation, quota.ErrNoReservation)
	case short:
		ints, err := reply.ints(2)
		if err != nil {
			return err
		}
		_, buckets, _ := quota.ParseReservation(r.reservation)
		if len(ints) < 3 { // of a draw
			ints = append(ints, 1)
		}
		if ints[2] < 1 || int(ints[2]) > len(buckets) {
			return reply.unknown()
		}
		bucket := buckets[ints[2]-1]
		return fmt.Errorf("%s: %d units of %s asked for, %d left: %w", r.reservation,
			quota.UnitsOf(r.costs)[bucket], bucket, ints[1], quota.ErrReservationShort)
	case tooLate:
		return fmt.Errorf("%s: %w: it expired, and more than %d entries came after it",
			r.reservation, quota.ErrSettledLate, maxRewritten)
	}
	return reply.unknown()
}

// estimates stands for the limit that denies where the estimates in flight do.
const estimates = -2

// decided makes a decision of {status, clock, stamp, denying limit, retry at, remaining of each
// bucket…, expiry}.
func (r *request) decided(id string, ints []int64) quota.Decision {
	d := quota.Decision{
		Allowed: ints[0] != denied, Observed: ints[0] == observed, At: fromMicro(ints[2]),
		Units: quota.UnitsOf(r.costs), Remaining: make(map[string]int64, len(r.costs)),
	}
	for i, c := range r.costs {
		if ints[5+i] <= quota.MaxTotal { // else it has no limit
			d.Remaining[c.Bucket] = ints[5+i]
		}
	}
	if ints[3] != 0 {
		d.Limit = quota.Suspended
		if ints[3] == estimates {
			d.Limit = quota.TooManyEstimates
		}
		if ints[4] < quota.Never {
			d.RetryAt = fromMicro(ints[4])
		}
		limits := slices.Concat(r.limits...) // fewer, perhaps, than when a kept answer was given
		if ints[3] > 0 && int(ints[3]) <= len(limits) {
			d.Limit = limits[ints[3]-1].Name()
		}
	}
	switch {
	case !d.Allowed:
		d.At = fromMicro(ints[1])
	case r.op == "reserve":
		d.Reservation = wholeID(id, r.costs)
		d.ExpiresAt = fromMicro(ints[5+len(r.costs)])
	default:
		d.Entry = id
	}
	return d
}

// wholeID is the ID of a reservation of costs from the one within its buckets (holdID).
func wholeID(id string, costs []quota.Cost) string {
	if len(costs) > 1 {
		return id
	}
	return quota.ReservationID(id, costs[0].Bucket)
}
