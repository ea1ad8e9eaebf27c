package job

import (
	"context"
	"errors"

	"quotabudget/internal/quota"
)

// Drawing is the ledger for the requests of a command: what they take is drawn from its reservation
// while that lasts, and charged like anything else after that.
func Drawing(l quota.Ledger, credential, reservation string) quota.Ledger {
	_, buckets, err := quota.ParseReservation(reservation)
	if err != nil {
		return l
	}
	d := &drawing{Ledger: l, credential: credential, reservation: reservation}
	if len(buckets) == 1 { // nothing can be drawn from one of several
		d.bucket = buckets[0]
	}
	return d
}

type drawing struct {
	quota.Ledger
	credential, reservation, bucket string
}

// Charge draws what it can.
func (l *drawing) Charge(ctx context.Context, c quota.Charge) (quota.Decision, error) {
	for _, cost := range c.Costs {
		if cost.Bucket != l.bucket || c.Reservation != "" {
			continue
		}
		drawn := c
		drawn.Reservation = l.reservation
		d, err := l.Ledger.Charge(ctx, drawn)
		if !errors.Is(err, quota.ErrReservationShort) && !errors.Is(err, quota.ErrNoReservation) {
			return d, err
		}
	}
	d, err := l.Ledger.Charge(ctx, c)
	if err == nil && !d.Allowed && c.Reservation == "" && l.free(ctx) {
		return l.Ledger.Charge(ctx, c)
	}
	return d, err
}

// Reserve sets aside what a call of an unknown price may take.
func (l *drawing) Reserve(ctx context.Context, r quota.Reserve) (quota.Decision, error) {
	d, err := l.Ledger.Reserve(ctx, r)
	if err == nil && !d.Allowed && l.free(ctx) {
		return l.Ledger.Reserve(ctx, r)
	}
	return d, err
}

// free gives the reservation back where it stands in the way of the requests that it is for, and
// which cannot draw on it.
func (l *drawing) free(ctx context.Context) bool {
	_, err := l.Release(ctx, l.credential, l.reservation)
	return err == nil
}
