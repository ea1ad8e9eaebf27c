package plan

import (
	"math"
	"time"

	"quotabudget/internal/quota"
)

// Series is how one limit is used over time.
type Series struct {
	Limit quota.Limit
	Cap   int64
	Start time.Time // of the first step
	Step  time.Duration
	Use   []int64 // the peak of each step: units used and held
}

// sampling fills the series as the plan goes on.
type sampling struct {
	step    int64 // µs; 0 for none
	next    int64 // the step that begins next
	windows []*window
	logs    []*bucket
	series  []Series
}

func newSampling(s *player) sampling {
	m := sampling{step: s.Step.Microseconds(), next: s.From.UnixMicro()}
	if m.step <= 0 {
		return sampling{next: math.MaxInt64}
	}
	for _, b := range s.buckets {
		for i := range b.windows {
			w := &b.windows[i]
			m.windows, m.logs = append(m.windows, w), append(m.logs, b)
			m.series = append(m.series, Series{Limit: w.limit, Cap: w.most, Start: s.From, Step: s.Step})
		}
	}
	return m
}

// to begins the steps up to at, and notes what is used at their beginning; what is charged at at is not yet.
func (m *sampling) to(s *player, at int64) {
	for ; m.next <= at && m.next < s.To.UnixMicro(); m.next += m.step {
		for i, w := range m.windows {
			b := m.logs[i]
			b.lapse(m.next)
			m.series[i].Use = append(m.series[i].Use, w.used(&b.log, m.next)+b.held)
		}
	}
}

// see raises the last step to what is used now.
func (m *sampling) see() {
	for i, w := range m.windows {
		b, use := m.logs[i], m.series[i].Use
		if last := len(use) - 1; last >= 0 {
			use[last] = max(use[last], b.log.since(w.head)+b.held)
		}
	}
}
