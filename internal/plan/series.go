package plan

import (
	"math"
	"time"

	"quotabudget/internal/quota"
)

// Series is the use of one limit over time.
type Series struct {
	Limit quota.Limit
	Cap   int64
	Start time.Time // of the first step
	Step  time.Duration
	Use   []int64 // peak of each step: units used and held
}

// series builds the series as the plan proceeds.
type series struct {
	step, next, end int64 // µs; next is the start of the next step
	all             []Series
	used            []int64
}

func newSeries(r *recorder) series {
	s := series{step: r.Step.Microseconds(), next: r.From.UnixMicro(), end: r.To.UnixMicro()}
	if s.step <= 0 {
		return series{next: math.MaxInt64}
	}
	for _, l := range r.play.Windows() {
		s.all = append(s.all, Series{Limit: l, Cap: l.Cap(false), Start: r.From, Step: r.Step})
	}
	return s
}

// begin adds the steps up to at, each with the use at its start, before any charge at at.
func (s *series) begin(p *Play, at int64) {
	for ; s.next <= at && s.next < s.end; s.next += s.step {
		s.used = p.Used(s.next, s.used)
		for i, n := range s.used {
			s.all[i].Use = append(s.all[i].Use, n)
		}
	}
}

// raise raises the last step to the use after a run.
func (s *series) raise(used []int64) {
	if s.step == 0 {
		return
	}
	for i, n := range used {
		use := s.all[i].Use
		use[len(use)-1] = max(use[len(use)-1], n)
	}
}
