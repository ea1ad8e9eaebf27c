package quotatest

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// within is a limit on the bucket "default".
func within(units int64, window time.Duration) quota.Limit {
	return quota.Limit{Bucket: "default", Units: units, Window: quota.Sliding(window)}
}

var (
	dayLimit    = within(100, hours(24))
	searchLimit = quota.Limit{Bucket: "search_list", Units: 2, Window: quota.Sliding(hours(24))}
)

// subject is a ledger under test, with the credential and the limits of one case.
type subject struct {
	testing.TB
	h          Harness
	ledger     quota.Ledger
	credential string
	limits     []quota.Limit // of the bucket "default"
}

func newSubject(t testing.TB, h Harness, limits ...quota.Limit) *subject {
	t.Helper()
	h.SetNow(t, epoch)
	return &subject{t, h, h.Open(t), newCredential(), limits}
}

// at sets the clock.
func (s *subject) at(after time.Duration) { s.h.SetNow(s, epoch.Add(after)) }

// newCharge is of the bucket "default".
func (s *subject) newCharge(units int64) quota.Charge {
	return quota.Charge{
		Credential: s.credential, ID: quota.NewID(time.Now()), Limits: s.limits,
		Costs: []quota.Cost{{Bucket: "default", Units: units}},
	}
}

// ask makes a charge that may be denied.
func (s *subject) ask(c quota.Charge) quota.Decision {
	s.Helper()
	d, err := s.ledger.Charge(s.Context(), c)
	if err != nil {
		s.Errorf("charge of %v: %v", c.Costs, err)
	}
	return d
}

// must makes a charge that is allowed.
func (s *subject) must(c quota.Charge) quota.Decision {
	s.Helper()
	d := s.ask(c)
	if !d.Allowed {
		s.Errorf("charge of %v: %+v", c.Costs, d)
	}
	return d
}

func (s *subject) charge(units int64) (quota.Charge, quota.Decision) {
	s.Helper()
	c := s.newCharge(units)
	return c, s.must(c)
}

func (s *subject) cancel(c quota.Charge, d quota.Decision) {
	s.Helper()
	if err := s.ledger.Cancel(s.Context(), c, d); err != nil {
		s.Errorf("cancel: %v", err)
	}
}

func (s *subject) newReserve(id string, units int64, ttl time.Duration) quota.Reserve {
	return quota.Reserve{Credential: s.credential, ID: id, Units: units, Limits: s.limits, TTL: ttl}
}

func (s *subject) reserve(id string, units int64, ttl time.Duration) {
	s.Helper()
	d, err := s.ledger.Reserve(s.Context(), s.newReserve(id, units, ttl))
	if err != nil || !d.Allowed {
		s.Fatalf("reserve %s: %+v, %v", id, d, err)
	}
}

// log is the entries of a bucket.
func (s *subject) log(bucket string) []quota.Entry {
	s.Helper()
	q := quota.Query{Credential: s.credential, Bucket: bucket}
	entries, err := s.ledger.Entries(s.Context(), q)
	if err != nil {
		s.Fatal(err)
	}
	return entries
}

// used is what is used of each of the limits.
func (s *subject) used(limits ...quota.Limit) (used []int64) {
	s.Helper()
	u, err := s.ledger.Usage(s.Context(), s.credential, limits)
	if err != nil {
		s.Fatal(err)
	}
	for _, b := range u.Buckets {
		for _, l := range b.Limits {
			used = append(used, l.Used)
		}
	}
	return used
}
