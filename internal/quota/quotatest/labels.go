package quotatest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testLabelValues: a charge with one label value too many is denied, and idle values are forgotten.
func testLabelValues(t *testing.T, h Harness) {
	s := newSubject(t, h)
	each := within(30, hours(2))
	b := &quota.Budget{Ledger: s.ledger, Credential: s.credential,
		Limits:   []quota.Limit{within(100_000, hours(24))},
		PerLabel: []quota.LabelLimit{{Limit: each, Label: "team"}}}
	charge := func(b *quota.Budget, name string) quota.Decision {
		d, err := b.Charge(t.Context(), quota.Call{Units: 1, Labels: quota.Labels{"team": name}})
		must(t, err)
		return d
	}
	some := quota.Charge{Credential: s.credential, Limits: b.Limits, NewValues: true}
	for i := range quota.MaxValues { // one charge for as many buckets as it may have
		some.Costs = append(some.Costs, quota.Cost{Units: 1,
			Bucket: quota.LabelBucket("default", "team", fmt.Sprint("t", i))})
		if len(some.Costs) == quota.MaxBuckets-1 || i == quota.MaxValues-1 {
			some.ID, some.Unlimited = quota.NewID(time.Now()), true
			some.Costs = append(some.Costs, quota.Cost{Bucket: "default", Units: 1})
			s.must(some)
			some.Costs = nil
		}
	}
	s.at(time.Hour)
	d := charge(b, "new")
	if d.Allowed || d.Limit != "1000 values per label:team of default" ||
		!d.RetryAt.Equal(epoch.Add(2*time.Hour)) {
		t.Errorf("a value too many: %+v", d)
	}
	if d := charge(b, "t7"); !d.Allowed {
		t.Errorf("a known value: %+v", d)
	}
	observed := *b
	observed.Observe = true
	if d := charge(&observed, "new"); !d.Allowed {
		t.Errorf("observed: %+v", d)
	}
	names := func() (values []string) {
		known, err := s.ledger.BucketsOf(t.Context(), s.credential)
		must(t, err)
		return slices.DeleteFunc(quota.BucketNames(known),
			func(name string) bool { return !quota.IsLabelBucket(name) })
	}
	if n := len(names()); n != quota.MaxValues {
		t.Errorf("%d values are kept", n)
	}
	s.at(2 * time.Hour) // all but t7 are idle
	if d := charge(b, "new"); !d.Allowed {
		t.Errorf("after the window: %+v", d)
	}
	s.at(100 * time.Hour) // longer than idle values are kept
	for i := range 3 {
		if d := charge(b, fmt.Sprint("later", i)); !d.Allowed {
			t.Errorf("%+v", d)
		}
	}
	if n := len(names()); h.Forgets && n > quota.MaxValues-3 {
		t.Errorf("%d values are kept", n)
	}
	_, err := b.Charge(t.Context(), quota.Call{Units: 1, Bucket: "default@team=t1"})
	if !errors.Is(err, quota.ErrMalformed) {
		t.Errorf("a charge of a value's bucket: %v", err)
	}
}

// testLabelDraws: if the limits are per other labels when a hold ends than when it was made, its
// draws and its settlement count for the same label values.
func testLabelDraws(t *testing.T, h Harness) {
	s, ctx := newSubject(t, h), t.Context()
	whole := within(1000, hours(24))
	per := func(labels ...string) *quota.Budget {
		b := &quota.Budget{Ledger: s.ledger, Limits: []quota.Limit{whole},
			Log: slog.New(slog.DiscardHandler)}
		for _, label := range labels {
			b.PerLabel = append(b.PerLabel,
				quota.LabelLimit{Limit: within(50, hours(24)), Label: label})
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
				credential := newCredential()
				before.Credential, after.Credential = credential, credential
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
				for _, l := range before.PerLabel {
					value := map[string]string{"team": "ci", "job": "j1"}[l.Label]
					want[quota.LabelBucket("default", l.Label, value)] = end.used
				}
				s.wantUsed(credential, fmt.Sprintf("%s, from %d to %d", end.name, i, j), want)
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

// wantUsed checks the units used of all buckets with any, and that none are held.
func (s *subject) wantUsed(credential, what string, want map[string]int64) {
	s.Helper()
	known, err := s.ledger.BucketsOf(s.Context(), credential)
	must(s, err)
	var limits []quota.Limit
	for _, b := range known {
		limits = append(limits, quota.Limit{Bucket: b.Bucket, Units: 1, Window: quota.Sliding(hours(24))})
	}
	usage, err := s.ledger.Usage(s.Context(), credential, limits)
	must(s, err)
	got := map[string]int64{}
	for _, u := range usage.Buckets {
		if used := u.Limits[0].Used; used > 0 {
			got[u.Bucket] = used
		}
		if u.Held != 0 {
			s.Errorf("%s: %d units of %s are held", what, u.Held, u.Bucket)
		}
	}
	if !maps.Equal(got, want) {
		s.Errorf("%s: %v are used, want %v", what, got, want)
	}
}
