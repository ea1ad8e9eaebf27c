package quotatest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// runner runs the steps of one vector on a ledger.
type runner struct {
	t          *testing.T
	ledger     quota.Ledger
	credential string
	limits     []limit
	step       string
	charges    map[string]made // by entry ID, for cancelling
}

type made struct {
	charge   quota.Charge
	decision quota.Decision
}

func (r *runner) do(s step) {
	t, ctx := r.t, context.Background()
	limits := limitsOf(t, r.limits)
	switch {
	case s.Charge != nil:
		c := s.Charge.charge(r.credential, limits)
		d, err := r.ledger.Charge(ctx, c)
		if d.Allowed && !d.Replayed && !c.DryRun {
			r.charges[c.ID] = made{c, d}
		}
		r.checkDecision(s.Want, d, err)
	case s.Reserve != nil:
		q := s.Reserve
		d, err := r.ledger.Reserve(ctx, quota.Reserve{Credential: r.credential, ID: q.ID, Key: q.Key, Units: q.Units, Note: q.Note,
			Limits: ofReservation(limits, q.ID), TTL: time.Duration(q.TTL) * time.Microsecond, Manual: q.Manual, Observe: q.Observe})
		r.checkDecision(s.Want, d, err)
	case s.Commit != nil:
		c := quota.Commit{Credential: r.credential, Reservation: s.Commit.Reservation, ID: s.Commit.ID, Units: quota.AllUnits,
			Labels: s.Commit.Labels, Limits: ofReservation(limits, s.Commit.Reservation)}
		if s.Commit.Units != nil {
			c.Units = *s.Commit.Units
		}
		d, err := r.ledger.Commit(ctx, c)
		r.checkDecision(s.Want, d, err)
	case s.Release != "":
		left, err := r.ledger.Release(ctx, r.credential, s.Release)
		r.checkRelease(s.Want, left, err)
	case s.Cancel != "":
		c, ok := r.charges[s.Cancel]
		if !ok {
			t.Fatalf("%s: the vector cancels a charge %s that was never allowed", r.step, s.Cancel)
		}
		r.checkError(s.Want, r.ledger.Cancel(ctx, c.charge, c.decision))
	case s.Suspend != nil:
		r.checkError(s.Want, r.ledger.Suspend(ctx, r.credential, bucketName(s.Suspend.Bucket), timeOf(s.Suspend.Until)))
	default:
		r.look(s, limits)
	}
}

// look runs the steps that change nothing.
func (r *runner) look(s step, limits []quota.Limit) {
	ctx := context.Background()
	switch {
	case s.Usage != nil:
		u, err := r.ledger.Usage(ctx, r.credential, limits)
		r.fatal(err)
		r.checkUsage(s.Want, u)
	case s.Reservations != "":
		list, err := r.ledger.Reservations(ctx, r.credential, s.Reservations)
		r.fatal(err)
		r.checkReservations(s.Want, list)
	case s.Entries != nil:
		list, err := r.ledger.Entries(ctx, quota.Query{Credential: r.credential, Bucket: bucketName(s.Entries.Bucket),
			Since: timeOf(s.Entries.Since), Limit: s.Entries.Limit})
		r.fatal(err)
		r.checkEntries(s.Want, list)
	case s.Now == nil:
		r.t.Fatalf("%s: the vector asks nothing", r.step)
	}
}

func (c *chargeStep) charge(credential string, limits []quota.Limit) quota.Charge {
	q := quota.Charge{Credential: credential, ID: c.ID, Key: c.Key, Labels: c.Labels, Manual: c.Manual, Observe: c.Observe,
		DryRun: c.DryRun, Reservation: c.Reservation}
	if c.Units != 0 {
		q.Costs = []quota.Cost{{Bucket: quota.DefaultBucket, Units: c.Units}}
	}
	for _, k := range c.Costs {
		q.Costs = append(q.Costs, quota.Cost{Bucket: k.Bucket, Units: k.Units})
	}
	q.Limits = slices.DeleteFunc(limits, func(l quota.Limit) bool {
		return !slices.ContainsFunc(q.Costs, func(k quota.Cost) bool { return k.Bucket == l.Bucket })
	})
	return q
}

// ofReservation is the limits of the reservation's bucket.
func ofReservation(limits []quota.Limit, reservation string) []quota.Limit {
	bucket, _, _ := quota.ParseReservation(reservation)
	return slices.DeleteFunc(limits, func(l quota.Limit) bool { return l.Bucket != bucket })
}

func bucketName(name string) string {
	if name == "" {
		return quota.DefaultBucket
	}
	return name
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func (r *runner) fatal(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("%s: %v", r.step, err)
	}
}

func (r *runner) want(raw json.RawMessage, into any) {
	r.t.Helper()
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	if err := strict(raw, into); err != nil {
		r.t.Fatalf("%s: want: %v", r.step, err)
	}
}

// errorNames is what the vectors call the errors.
var errorNames = []struct {
	name string
	err  error
}{
	{"cost_exceeds_limit", quota.ErrCostExceedsLimit},
	{"no_bucket", quota.ErrNoBucket},
	{"no_reservation", quota.ErrNoReservation},
	{"reservation_short", quota.ErrReservationShort},
	{"no_entry", quota.ErrNoEntry},
	{"key_reused", quota.ErrKeyReused},
	{"malformed", quota.ErrMalformed},
}

func errorName(err error) string {
	if err == nil {
		return ""
	}
	for _, e := range errorNames {
		if errors.Is(err, e.err) {
			return e.name
		}
	}
	return "unexpected: " + err.Error()
}
