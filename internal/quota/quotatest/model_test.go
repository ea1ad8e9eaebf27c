package quotatest

import (
	"testing"

	"quotabudget/internal/quota"
)

// TestModel holds the model itself to the contract.
func TestModel(t *testing.T) { Run(t, harnessOf(&Model{})) }

// TestStanding holds what ledgers share, quota.Standing, to the contract: the model with its
// arithmetic exchanged.
func TestStanding(t *testing.T) { Run(t, harnessOf(&Model{arithmetic: standings{}})) }

func harnessOf(m *Model) Harness {
	var clock Clock
	m.Now = clock.Now
	return Harness{Open: func(testing.TB) quota.Ledger { return m }, SetNow: clock.Set}
}

// standings decides with quota.Standing on a slice.
type standings struct{}

func standing(b *bucket, w quota.Window, n int64, holds bool) quota.Standing {
	s := quota.Standing{Limit: quota.Limit{Window: w}, Log: slice(b.entries), Now: n}
	if w.IsCalendar() {
		start, end := w.Bounds(moment(n))
		s.Start, s.End = start.UnixMicro(), end.UnixMicro()
	}
	s.Reset, s.Lapsing = b.reset, b.lapsing(n)
	if w.IsRestoring() {
		s.Level = level(b.alone(), w, n)
	}
	if o := b.others[w.String()]; o.units > 0 {
		s = s.With(quota.Others{At: o.at, Units: o.units, Level: o.level})
	}
	for _, h := range b.holds {
		if holds && h.expires > n {
			s.Holds = append(s.Holds, quota.Hold{Units: h.left, ExpiresAt: h.expires})
		}
	}
	return s
}

func (standings) used(b *bucket, w quota.Window, n int64) int64 {
	return standing(b, w, n, true).Used()
}

func (standings) earliest(b *bucket, w quota.Window, a ask) int64 {
	return standing(b, w, a.n, a.holds).Fits(a.cost, a.cap)
}

func (standings) nextFree(b *bucket, w quota.Window, n int64) int64 {
	return standing(b, w, n, true).NextFree()
}

// slice is a quota.Log.
type slice []entry

func (s slice) UsedAfter(t int64) (units int64) {
	for _, e := range s {
		if e.at > t {
			units += e.units
		}
	}
	return units
}

func (s slice) StampAt(t, n int64) int64 {
	for _, e := range s {
		if e.at > t {
			if n -= e.units; n <= 0 {
				return e.at
			}
		}
	}
	panic("quotatest: more units asked for than used")
}
