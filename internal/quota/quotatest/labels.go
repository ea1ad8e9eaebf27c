package quotatest

import (
	"errors"
	"fmt"
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
