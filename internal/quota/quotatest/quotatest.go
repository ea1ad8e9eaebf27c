// Package quotatest is the contract of a ledger.Store as a test suite.
//
// To test a ledger, pass a Harness to Run:
//
//	func TestContract(t *testing.T) {
//		var clock quotatest.Clock
//		path := filepath.Join(t.TempDir(), "ledger.db")
//		quotatest.Run(t, quotatest.Harness{
//			Open:   func(t testing.TB) *ledger.Ledger { return open(t, path, clock.Now) },
//			SetNow: clock.Set,
//		})
//	}
//
// The suite runs the step tables of vectors/, compares random histories with a brute-force model,
// checks bounds, and makes concurrent charges through several handles. Every case has its own
// credential, so that all cases can use one store.
package quotatest

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// Harness gives the suite access to a ledger.
type Harness struct {
	// Open returns another handle on the store, and closes it when the test ends. All handles
	// share one store.
	Open func(t testing.TB) *ledger.Ledger
	// SetNow sets the clock of every handle to now, which is in whole microseconds and may be
	// earlier than before. The clock does not advance by itself.
	SetNow func(t testing.TB, now time.Time)
	// Histories is the number of random histories of each kind if the flag -rapid.checks is not
	// set; 0 is rapid's default. Each run generates new histories.
	Histories int
	// Dump returns all stored data of the credential as text, to check that nothing changed. If it
	// is nil, only the ledger's own answers are compared.
	Dump func(t testing.TB, credential string) string
	// Forgets means that the store forgets idle label values when a charge has new ones. Redis
	// instead expires them by a clock that SetNow does not set.
	Forgets bool
}

// Call is a charge or, if Reserve is not nil, a reservation.
type Call struct {
	Charge  quota.Charge
	Reserve *quota.Reserve
}

func (c Call) ask(ctx context.Context, l *ledger.Ledger) (quota.Decision, error) {
	if c.Reserve != nil {
		return l.Reserve(ctx, *c.Reserve)
	}
	return l.Charge(ctx, c.Charge)
}

// Run tests a ledger against the contract.
func Run(t *testing.T, h Harness) {
	stated := h.Histories == 0 // -rapid.checks on the command line overrides Histories
	flag.Visit(func(f *flag.Flag) { stated = stated || f.Name == "rapid.checks" })
	if !stated {
		flag.Lookup("rapid.checks").Value.Set(strconv.Itoa(h.Histories))
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, Harness)
	}{
		{"Vectors", testVectors}, {"Retention", testRetention}, {"FarBack", testFarBack},
		{"NewRate", testNewRate}, {"ManyHolds", testManyHolds}, {"Mark", testMark},
		{"Denials", testDenials},
		{"Claims", testClaims}, {"Order", testOrder}, {"ExactlyTheLimit", testExactlyTheLimit},
		{"OneKeyOnce", testOneKeyOnce}, {"DrawsAtOnce", testDrawsAtOnce},
		{"LabelValues", testLabelValues}, {"Random", testRandom}, {"RandomHolds", testRandomHolds},
		{"RandomLevels", testRandomLevels},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, h) })
	}
}

// Clock is a clock that changes only when it is set. Its zero value is the beginning of 1970.
type Clock struct{ micros atomic.Int64 }

// Now returns the moment the clock was last set to.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.micros.Load()).UTC() }

// Set sets the clock.
func (c *Clock) Set(_ testing.TB, now time.Time) { c.micros.Store(now.UnixMicro()) }

var credentials atomic.Int64

// newCredential names a credential that no other case of this process uses.
func newCredential() string { return fmt.Sprintf("case-%d", credentials.Add(1)) }

// epoch is the default start of a case: a Monday noon in summer, far from any clock change.
var epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func hours(n int64) time.Duration { return time.Duration(n) * time.Hour }

// moment returns the time of a stamp, or the zero time for 0 and quota.Never.
func moment(micros int64) time.Time {
	if micros == 0 || micros == quota.Never {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// within returns a limit on the bucket "default".
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
	ledger     *ledger.Ledger
	credential string
	limits     []quota.Limit // of the bucket "default"
}

func newSubject(t testing.TB, h Harness, limits ...quota.Limit) *subject {
	t.Helper()
	h.SetNow(t, epoch)
	return &subject{t, h, h.Open(t), newCredential(), limits}
}

// at sets the clock to a time after epoch.
func (s *subject) at(after time.Duration) { s.h.SetNow(s, epoch.Add(after)) }

// newCharge returns a charge of the bucket "default".
func (s *subject) newCharge(units int64) quota.Charge {
	return quota.Charge{
		Credential: s.credential, ID: quota.NewID(time.Now()), Limits: s.limits,
		Costs: []quota.Cost{{Bucket: "default", Units: units}},
	}
}

// must makes a charge, and fails the test unless it is allowed.
func (s *subject) must(c quota.Charge) quota.Decision {
	s.Helper()
	d, err := s.ledger.Charge(s.Context(), c)
	if err != nil || !d.Allowed {
		s.Errorf("charge of %v: %+v, %v", c.Costs, d, err)
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
	return quota.Reserve{Credential: s.credential, ID: id, Limits: s.limits, TTL: ttl,
		Costs: []quota.Cost{{Bucket: "default", Units: units}}}
}

func (s *subject) reserve(id string, units int64, ttl time.Duration) {
	s.Helper()
	d, err := s.ledger.Reserve(s.Context(), s.newReserve(id, units, ttl))
	if err != nil || !d.Allowed {
		s.Fatalf("reserve %s: %+v, %v", id, d, err)
	}
}

// log returns the entries of a bucket.
func (s *subject) log(bucket string) []quota.Entry {
	s.Helper()
	q := quota.Query{Credential: s.credential, Bucket: bucket}
	entries, err := s.ledger.Entries(s.Context(), q)
	must(s, err)
	return entries
}

// used returns the units used under each of the limits.
func (s *subject) used(limits ...quota.Limit) (used []int64) {
	s.Helper()
	u, err := s.ledger.Usage(s.Context(), s.credential, limits)
	must(s, err)
	for _, b := range u.Buckets {
		for _, l := range b.Limits {
			used = append(used, l.Used)
		}
	}
	return used
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
