package ledger_test

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestLabelDraws: if the limits' labels change while a hold exists, its draws and its settlement
// still count for the label values it was made with.
func TestLabelDraws(t *testing.T) {
	ctx := t.Context()
	limit := func(bucket string, units int64) quota.Limit {
		return quota.Limit{Bucket: bucket, Units: units, Window: quota.Sliding(24 * time.Hour)}
	}
	per := func(labels ...string) *quota.Budget {
		b := &quota.Budget{Credential: "key1", Limits: []quota.Limit{limit("default", 1000)},
			Log: slog.New(slog.DiscardHandler)}
		for _, label := range labels {
			b.PerLabel = append(b.PerLabel,
				quota.LabelLimit{Limit: limit("default", 50), Label: label})
		}
		return b
	}
	budgets := []*quota.Budget{per(), per("team"), per("job"), per("job", "team")}
	other := quota.Labels{"team": "web", "job": "j2"}
	call := func(units int64, reservation string) quota.Call {
		return quota.Call{Costs: []quota.Cost{{Bucket: "default", Units: units}},
			Labels: other, Reservation: reservation}
	}
	for _, end := range []struct {
		name string
		do   func(b *quota.Budget, made quota.Decision) error
		used int64
	}{
		{"drawn", func(b *quota.Budget, made quota.Decision) error {
			_, err := b.Draw(ctx, made.Reservation, 5, other)
			return err
		}, 14},
		{"drawn and cancelled", func(b *quota.Budget, made quota.Decision) error {
			_, cancel, err := b.Spend(ctx, call(5, made.Reservation))
			if err != nil {
				return err
			}
			return cancel(ctx)
		}, 9},
		{"drawn and given back", func(b *quota.Budget, made quota.Decision) error {
			c := call(5, made.Reservation)
			d, err := b.Hold(ctx, quota.ReserveRequest{Call: c})
			if err != nil {
				return err
			}
			return b.GiveBack(ctx, d, c)
		}, 9},
		{"drawn and booked", func(b *quota.Budget, made quota.Decision) error {
			return book(ctx, b, call(5, made.Reservation), 3)
		}, 12},
		{"booked beyond the hold", func(b *quota.Budget, made quota.Decision) error {
			return book(ctx, b, call(5, made.Reservation), 30)
		}, 39},
		{"lost", func(b *quota.Budget, made quota.Decision) error {
			if _, err := b.Release(ctx, made.Reservation); err != nil {
				return err
			}
			_, err := b.Book(ctx, b.NewBooking(made, call(7, ""), quota.LapseCharge))
			return err
		}, 7},
	} {
		for i, before := range budgets {
			for j, after := range budgets {
				l, now := inMemory()
				*now, before.Ledger, after.Ledger = epoch, l, l
				made, err := before.Reserve(ctx, quota.ReserveRequest{TTL: time.Hour,
					Call: quota.Call{Units: 15, Labels: quota.Labels{"team": "ci", "job": "j1"}}})
				if err == nil {
					err = end.do(after, made)
				}
				if err == nil && end.name != "lost" {
					_, err = after.Commit(ctx, made.Reservation, 9)
				}
				if err != nil {
					t.Errorf("%s, from %d to %d: %v", end.name, i, j, err)
				}
				want := map[string]int64{"default": end.used}
				for _, per := range before.PerLabel {
					value := map[string]string{"team": "ci", "job": "j1"}[per.Label]
					want[quota.LabelBucket("default", per.Label, value)] = end.used
				}
				known, err := l.BucketsOf(ctx, "key1")
				must(t, err)
				var limits []quota.Limit
				for _, b := range known {
					limits = append(limits, limit(b.Bucket, 1))
				}
				usage, err := l.Usage(ctx, "key1", limits)
				must(t, err)
				got, held := map[string]int64{}, int64(0)
				for _, u := range usage.Buckets {
					held += u.Held
					if used := u.Limits[0].Used; used > 0 {
						got[u.Bucket] = used
					}
				}
				if !maps.Equal(got, want) || held != 0 {
					t.Errorf("%s, from %d to %d: %v are used, want %v; %d are held", end.name, i, j, got,
						want, held)
				}
			}
		}
	}
}

// book books units for a call that has drawn its costs.
func book(ctx context.Context, b *quota.Budget, call quota.Call, units int64) error {
	d, err := b.Hold(ctx, quota.ReserveRequest{Call: call})
	if err != nil {
		return err
	}
	call.Costs = []quota.Cost{{Bucket: "default", Units: units}}
	_, err = b.Book(ctx, b.NewBooking(d, call, quota.LapseCharge))
	return err
}
