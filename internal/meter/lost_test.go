package meter_test

import (
	"context"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"quotabudget/internal/ledger"
	"quotabudget/internal/meter"
	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
)

// lossy is a ledger that executes each operation but can lose its answer.
type lossy struct {
	*ledger.Ledger
	settled, held, charged atomic.Bool // lose the next answer to this operation
}

// loseIf returns the ledger's answer, or ErrUnreachable once if lost is set.
func loseIf(lost *atomic.Bool, d quota.Decision, err error) (quota.Decision, error) {
	if lost.Swap(false) {
		return quota.Decision{}, quota.ErrUnreachable
	}
	return d, err
}

func (l *lossy) Charge(ctx context.Context, c quota.Charge) (quota.Decision, error) {
	d, err := l.Ledger.Charge(ctx, c)
	return loseIf(&l.charged, d, err)
}

func (l *lossy) Reserve(ctx context.Context, r quota.Reserve) (quota.Decision, error) {
	d, err := l.Ledger.Reserve(ctx, r)
	return loseIf(&l.held, d, err)
}

func (l *lossy) Settle(ctx context.Context, s quota.Settle) (quota.Decision, error) {
	d, err := l.Ledger.Settle(ctx, s)
	return loseIf(&l.settled, d, err)
}

// TestHoldInDoubt: a request is not sent if the response to its hold was lost. The hold, if made,
// lapses into a charge.
func TestHoldInDoubt(t *testing.T) {
	t.Parallel()
	l := &lossy{Ledger: metertest.File(t)}
	m := onLedger(t, "anthropic", l, limitOn("output", 100_000))
	l.held.Store(true)
	var tally meter.Tally
	_, _, err := m.send(m.message(meter.WithTally(t.Context(), &tally), 50, false))
	refused(t, err, quota.ErrUnreachable)
	m.settled(t)
	m.expectUnits(t, "output", 200, 0)
	if tally.Open() || m.standin.Counts().Requests != 0 {
		t.Errorf("open: %t, the stand-in counted %+v", tally.Open(), m.standin.Counts())
	}
}

// TestLostHold: the usage of a call is booked once, although the ledger has lost its hold and is
// then unreachable for a while.
func TestLostHold(t *testing.T) {
	for _, again := range []bool{false, true} {
		l := &lossy{Ledger: metertest.File(t)}
		m := onLedger(t, "anthropic", l, limitOn("output", 100_000), limitOn("requests", 100),
			quota.Limit{Bucket: "requests", Units: 5, Window: quota.Window{Concurrent: true}})
		resp, err := m.RoundTrip(m.message(t.Context(), 50, true))
		must(t, err)
		holds, err := l.Reservations(t.Context(), "key1", "output/sonnet-4")
		must(t, err)
		for _, hold := range holds {
			_, err := l.Ledger.Release(t.Context(), quota.Release{Credential: "key1",
				Reservation: hold.ID})
			must(t, err)
		}
		l.charged.Store(again)
		must(t, discard(resp))
		m.settled(t)
		m.expectUnits(t, "output", 0, 50)
		m.expectUnits(t, "requests", 0, 1)
		if !strings.Contains(m.log.String(), "booking what was used") {
			t.Error(m.log)
		}
	}
}

// TestTallyAfterLostAnswer: a settlement whose answer was lost is tallied like any other, also for
// buckets that the upstream's response does not mention.
func TestTallyAfterLostAnswer(t *testing.T) {
	units, booked := map[bool]map[string]int64{}, map[bool]map[string]int64{}
	for _, lost := range []bool{false, true} {
		l := &lossy{Ledger: metertest.File(t)}
		l.settled.Store(lost)
		across := limitOn("output", 100_000)
		across.Across = true
		under := quota.Limit{Bucket: "requests", Units: 5, Window: quota.Window{Concurrent: true}}
		m := onLedger(t, "anthropic", l, across, under, limitOn("input", 100_000))
		reports := make(chan map[string]int64, 1)
		var tally meter.Tally
		tally.Booked = func(u map[string]int64) { reports <- maps.Clone(u) }
		_, _, err := m.send(m.message(meter.WithTally(t.Context(), &tally), 50, false))
		must(t, err)
		booked[lost] = <-reports
		units[lost] = tally.Units()
		if tally.Open() {
			t.Errorf("after a lost answer (%t) it is open", lost)
		}
	}
	if !maps.Equal(units[false], units[true]) || !maps.Equal(booked[false], booked[true]) {
		t.Errorf("units %v, with a lost answer %v; booked %v, with a lost answer %v",
			units[false], units[true], booked[false], booked[true])
	}
}
