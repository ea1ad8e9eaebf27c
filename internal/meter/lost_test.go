package meter_test

import (
	"context"
	"maps"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/ledger/sqliteledger"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
)

// away is a ledger that is out of reach for one settlement: after it was done, or because the
// reservation was lost with a server.
type away struct {
	quota.Ledger
	quota.Claims
	done, lost atomic.Bool
}

func (l *away) Settle(ctx context.Context, s quota.Settle) (quota.Decision, error) {
	if l.lost.Swap(false) {
		if _, err := l.Ledger.Release(ctx, s.Credential, s.Reservation); err != nil {
			return quota.Decision{}, err
		}
		return quota.Decision{}, quota.ErrUnreachable
	}
	d, err := l.Ledger.Settle(ctx, s)
	if l.done.Swap(false) {
		return quota.Decision{}, quota.ErrUnreachable
	}
	return d, err
}

// TestResourceInDoubt: what is billed once is booked again where its hold was lost with its
// settlement.
func TestResourceInDoubt(t *testing.T) {
	ledgersAt(t, func(t *testing.T, ledger func(time.Time) quota.Ledger) {
		var l *away
		m := atNoon(t, func(now time.Time) quota.Ledger {
			of := ledger(now)
			l = &away{Ledger: of, Claims: of.(quota.Claims)}
			l.lost.Store(true)
			return l
		})
		m.read(t, "/2/tweets/1") // its hold is lost
		m.read(t, "/2/tweets/1")
		m.other(t, l).read(t, "/2/tweets/1")
		if got := m.booked(t, "money", false); got < 5000 {
			t.Errorf("%d booked for a post that was read three times, want 5000 at least", got)
		}
	})
}

// TestTallyAfterLostAnswer: a settlement whose answer was lost is told as any other, also of
// buckets that the answer of the upstream says nothing of.
func TestTallyAfterLostAnswer(t *testing.T) {
	units, booked := map[bool]map[string]int64{}, map[bool]map[string]int64{}
	for _, lost := range []bool{false, true} {
		of, err := sqliteledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
		must(t, err)
		t.Cleanup(func() { of.Close() })
		l := &away{Ledger: of, Claims: of}
		l.done.Store(lost)
		across := limitOn("output", 100_000)
		across.Across = true
		under := quota.Limit{Bucket: "requests", Units: 5, Window: quota.Window{Concurrent: true}}
		m := onLedger(t, "anthropic", l, across, under, limitOn("input", 100_000))
		told := make(chan map[string]int64, 1)
		var tally meter.Tally
		tally.Booked = func(u map[string]int64) { told <- maps.Clone(u) }
		_, _, err = m.send(m.message(meter.WithTally(t.Context(), &tally), 50, false))
		must(t, err)
		booked[lost] = <-told
		units[lost] = tally.Units()
	}
	if !maps.Equal(units[false], units[true]) || !maps.Equal(booked[false], booked[true]) {
		t.Errorf("units %v, with a lost answer %v; booked %v, with a lost answer %v",
			units[false], units[true], booked[false], booked[true])
	}
}
