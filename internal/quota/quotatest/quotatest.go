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
	t.Run("Vectors", func(t *testing.T) { RunVectors(t, h) })
	t.Run("Denial", func(t *testing.T) { testDenialChangesNothing(t, h) })
	t.Run("DryRun", func(t *testing.T) { testDryRun(t, h) })
	t.Run("Retention", func(t *testing.T) { testRetention(t, h) })
	t.Run("LongerWindow", func(t *testing.T) { testLongerWindow(t, h) })
	t.Run("ShorterWindow", func(t *testing.T) { testShorterWindow(t, h) })
	t.Run("ClockBack", func(t *testing.T) { testClockBack(t, h) })
	t.Run("LoweredLimit", func(t *testing.T) { testLoweredLimit(t, h) })
	t.Run("Refusal", func(t *testing.T) { testRefusals(t, h) })
	t.Run("UsageAtOneMoment", func(t *testing.T) { testUsageAtOneMoment(t, h) })
	t.Run("SpendAgain", func(t *testing.T) { testSpendAgain(t, h) })
	t.Run("CancelTheOnlyOne", func(t *testing.T) { testCancelTheOnlyOne(t, h) })
	t.Run("CancelFarBack", func(t *testing.T) { testCancelFarBack(t, h) })
	t.Run("Sums", func(t *testing.T) { testSums(t, h) })
	t.Run("SumsOfReservations", func(t *testing.T) { testSumsOfReservations(t, h) })
	t.Run("SumsTrimmed", func(t *testing.T) { testSumsTrimmed(t, h) })
	t.Run("Between", func(t *testing.T) { testBetween(t, h) })
	t.Run("Pages", func(t *testing.T) { testPages(t, h) })
	t.Run("Check", func(t *testing.T) { testCheck(t, h) })
	t.Run("Claims", func(t *testing.T) { testClaims(t, h) })
	t.Run("Pace", func(t *testing.T) { testPace(t, h) })
	t.Run("ManyHolds", func(t *testing.T) { testManyHolds(t, h) })
	t.Run("HoldsInTurn", func(t *testing.T) { testHoldsInTurn(t, h) })
	t.Run("Concurrent", func(t *testing.T) { testConcurrent(t, h) })
	t.Run("Random", func(t *testing.T) { testRandom(t, h) })
	t.Run("RandomHolds", func(t *testing.T) { testRandomHolds(t, h) })
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
