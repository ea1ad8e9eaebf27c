package redisledger

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"quotabudget/internal/quota"
)

// decision reads the reply of charge.lua.
func (l *Ledger) decision(r request, reply []any) (quota.Decision, error) {
	switch status := reply[0].(int64); status {
	case replayed:
		kept, err := parseAnswer(reply[1].(string))
		if err != nil {
			return quota.Decision{}, err
		}
		slices.SortFunc(r.costs, func(a, b quota.Cost) int { // as they were when the answer was given
			return slices.Index(kept.buckets, a.Bucket) - slices.Index(kept.buckets, b.Bucket)
		})
		d := r.decided(kept.id, kept.ints)
		d.Limit, d.Replayed = kept.limit, true
		return d, nil
	case allowed, denied, observed:
		ints := toInts(reply)
		l.learn(ints[1])
		id := r.id
		if r.dryRun {
			id = "" // nothing was written under it
		}
		return r.decided(id, ints), nil
	case never:
		limit := r.flat()[reply[1].(int64)-1]
		cost := quota.UnitsOf(r.costs)[limit.Bucket]
		return neverOr(r.costs, &quota.CostExceedsLimitError{Limit: limit, Units: cost, Cap: limit.Cap(r.manual)})
	default:
		return quota.Decision{}, r.refusal(status, reply)
	}
}

// refusal is the error for a status at which a script decided nothing.
func (r request) refusal(status int64, reply []any) error {
	switch status {
	case stale:
		return fmt.Errorf("%w: its clock moved %d times while it was asked", quota.ErrUnreachable, maxAsks)
	case reused:
		return fmt.Errorf("%w: %q, with another call or other costs", quota.ErrKeyReused, r.userKey)
	case unknown:
		return fmt.Errorf("%s: %w", r.reservation, quota.ErrNoReservation)
	case short:
		bucket, _, _ := quota.ParseReservation(r.reservation)
		return fmt.Errorf("%s: %d units asked for, %d left: %w", r.reservation, quota.UnitsOf(r.costs)[bucket], reply[1].(int64),
			quota.ErrReservationShort)
	}
	return fmt.Errorf("the script replied %v, which this version does not know", reply)
}

// decided makes a decision of {status, clock, stamp, denying limit, retry at, remaining of each bucket…, expiry}.
func (r request) decided(id string, ints []int64) quota.Decision {
	d := quota.Decision{
		Allowed: ints[0] != denied, Observed: ints[0] == observed, At: fromMicro(ints[2]),
		Units: quota.UnitsOf(r.costs), Remaining: make(map[string]int64, len(r.costs)),
	}
	for i, c := range r.costs {
		d.Remaining[c.Bucket] = ints[5+i]
	}
	if ints[3] != 0 {
		d.Limit = quota.Suspended
		if ints[4] < quota.Never {
			d.RetryAt = fromMicro(ints[4])
		}
		if limits := r.flat(); ints[3] > 0 && int(ints[3]) <= len(limits) { // fewer, perhaps, than when a kept answer was given
			d.Limit = limits[ints[3]-1].Name()
		}
	}
	switch {
	case !d.Allowed:
		d.At = fromMicro(ints[1])
	case r.op == "reserve":
		d.Reservation = quota.ReservationID(r.costs[0].Bucket, id)
		d.ExpiresAt = fromMicro(ints[5+len(r.costs)])
	default:
		d.Entry = id
	}
	return d
}

func toInts(reply []any) []int64 {
	ints := make([]int64, len(reply))
	for i, v := range reply {
		ints[i] = v.(int64)
	}
	return ints
}

// answer is what was kept under a key: the ID, what would have denied in observe mode, the buckets in their order, and the
// numbers of the reply.
type answer struct {
	id, limit string
	buckets   []string
	ints      []int64
}

func parseAnswer(text string) (answer, error) {
	fields := strings.Fields(text)
	if len(fields) < 8 {
		return answer{}, fmt.Errorf("%w: an answer kept in it is damaged: %q", quota.ErrLedgerUnusable, text)
	}
	a := answer{id: fields[0], buckets: strings.Split(fields[2], ",")}
	if fields[1] != "-" {
		a.limit, _ = url.QueryUnescape(fields[1])
	}
	for _, f := range fields[3:] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return answer{}, fmt.Errorf("%w: an answer kept in it is damaged: %w", quota.ErrLedgerUnusable, err)
		}
		a.ints = append(a.ints, n)
	}
	return a, nil
}
