// Package quotatest is the contract of a quota.Ledger as a test suite.
//
// A ledger's whole test is a Harness and a call of Run:
//
//	func TestContract(t *testing.T) {
//		var clock quotatest.Clock
//		path := filepath.Join(t.TempDir(), "ledger.db")
//		quotatest.Run(t, quotatest.Harness{
//			Open:   func(t testing.TB) quota.Ledger { return open(t, path, clock.Now) },
//			SetNow: clock.Set,
//		})
//	}
//
// The suite holds the step tables of vectors/, a comparison with the brute-force Model on random
// histories, proof that a denial changes nothing, and concurrent charges through several handles.
// Every case has a credential of its own, so that one store serves them all.
package quotatest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// Harness is how the suite gets at a ledger.
type Harness struct {
	// Open returns another handle on the one store that all handles share, and closes it when the
	// test ends.
	Open func(t testing.TB) quota.Ledger
	// SetNow moves the clock of every handle, forwards or backwards, and stops it there. now is in
	// whole microseconds.
	SetNow func(t testing.TB, now time.Time)
	// Dump is everything that the store holds of the credential, as text, to see that nothing
	// changed. It may be nil: then only what the ledger itself tells is compared.
	Dump func(t testing.TB, credential string) string
	// Break lays hands on the store. Only a quota.Checker needs it, and Dump.
	Break func(t testing.TB, credential string, how Damage)
}

// Run holds a ledger to the contract.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Harness)
	}{
		{"Vectors", testVectors}, {"Denial", testDenialChangesNothing}, {"DryRun", testDryRun},
		{"Retention", testRetention}, {"LongerWindow", testLongerWindow},
		{"ShorterWindow", testShorterWindow}, {"ClockBack", testClockBack},
		{"LoweredLimit", testLoweredLimit}, {"Refusal", testRefusals},
		{"UsageAtOneMoment", testUsageAtOneMoment}, {"SpendAgain", testSpendAgain},
		{"CancelTheOnlyOne", testCancelTheOnlyOne}, {"CancelFarBack", testCancelFarBack},
		{"Sums", testSums}, {"SumsOfReservations", testSumsOfReservations},
		{"SumsTrimmed", testSumsTrimmed}, {"Between", testBetween}, {"Pages", testPages},
		{"Check", testCheck}, {"Claims", testClaims}, {"Pace", testPace},
		{"ManyHolds", testManyHolds}, {"HoldsInTurn", testHoldsInTurn},
		{"Concurrent", testConcurrent}, {"Random", testRandom}, {"RandomHolds", testRandomHolds},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, h) })
	}
}

// Clock is a clock that stands still until it is set. Its zero value shows the beginning of 1970.
type Clock struct{ micros atomic.Int64 }

// Now is the moment the clock was last set to.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.micros.Load()).UTC() }

// Set moves the clock.
func (c *Clock) Set(_ testing.TB, now time.Time) { c.micros.Store(now.UnixMicro()) }

var credentials atomic.Int64

// newCredential names a credential that no other case of this process uses.
func newCredential() string { return fmt.Sprintf("case-%d", credentials.Add(1)) }

// epoch is when the cases that do not care begin: a Monday noon in summer, far from any clock
// change.
var epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func hours(n int64) time.Duration { return time.Duration(n) * time.Hour }
