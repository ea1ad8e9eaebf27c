package plan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// event is one tick on its way.
type event struct {
	at   int64 // µs
	lane int32
}

// player plays a plan.
type player struct {
	*Plan
	buckets  []*bucket
	day      *sharing
	lanes    []progress
	events   []event
	report   *Report
	crowds   map[string]int // index of the collisions by their lanes
	sampling sampling
	ended    bool
}

// progress is how a lane stands.
type progress struct {
	complete int64 // when its last complete chart was complete; MinInt64 for never
	pages    int64 // of the chart that was cut off; 0 for none
	begun    int64 // when its first page came
	spent    int64 // units of the upstream's day
	today    Counts
	ever     Counts
}

// Execute plays the plan. Two plays of one plan are alike.
func (p *Plan) Execute() Report {
	r := &Report{From: p.From, To: p.To}
	s := &player{Plan: p, report: r, crowds: make(map[string]int), lanes: make([]progress, len(p.Lanes))}
	for i := range s.lanes {
		s.lanes[i].complete = math.MinInt64
	}
	for _, cost := range p.Price {
		s.buckets = append(s.buckets, newBucket(p, cost))
	}
	s.day = newSharing(s)
	s.sampling = newSampling(s)
	for from := p.From; from.Before(p.To) && !s.ended; {
		start, end := p.Reset.Bounds(from)
		to := end
		if to.After(p.To) {
			to = p.To
		}
		s.play(from, to, span{start, end})
		from = end
	}
	s.finish()
	return *r
}

// span is one upstream day.
type span struct{ start, end time.Time }

// play plays the part of an upstream day that is planned.
func (s *player) play(from, to time.Time, day span) {
	for _, b := range s.buckets {
		b.wanted, b.spent = 0, 0
		for i := range b.windows {
			b.windows[i].peak = peak{use: -1, legroom: math.MaxInt64}
		}
		b.see(from.UnixMicro())
	}
	for i := range s.lanes {
		s.lanes[i].today, s.lanes[i].spent = Counts{}, s.spentBefore(i, day.start)
	}
	s.collect(from, to)
	first := len(s.report.Days)
	s.openDay(day)
	for rest := s.events; len(rest) > 0 && !s.ended; {
		rest = s.minute(rest, first)
	}
	s.sampling.to(s, to.UnixMicro())
	s.closeDay(first)
}

// collect lists the ticks from one moment to just before another.
func (s *player) collect(from, to time.Time) {
	s.events = s.events[:0]
	for i, l := range s.Lanes {
		for tick := range l.Ticks(from.Add(-time.Nanosecond), to.Add(-time.Nanosecond)) {
			s.events = append(s.events, event{tick.At.UnixMicro(), int32(i)})
		}
	}
	slices.SortFunc(s.events, func(a, b event) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		return cmp.Compare(a.lane, b.lane)
	})
}

// minute runs the events of the first one's minute and returns the others.
func (s *player) minute(events []event, day int) []event {
	n := 1
	for minute := floorMinute(events[0].at); n < len(events) && floorMinute(events[n].at) == minute; {
		n++
	}
	if n > 1 {
		s.crowd(events[:n], day)
	}
	for rest := events[:n]; len(rest) > 0 && !s.ended; {
		k := 1
		for k < len(rest) && rest[k].at == rest[0].at {
			k++
		}
		if k > 1 { // the stalest first
			slices.SortStableFunc(rest[:k], func(a, b event) int {
				return cmp.Compare(s.lanes[a.lane].complete, s.lanes[b.lane].complete)
			})
		}
		for _, e := range rest[:k] {
			if !s.ended {
				s.tick(e, day)
			}
		}
		rest = rest[k:]
	}
	return events[n:]
}

const minuteLength = int64(time.Minute / time.Microsecond)

func floorMinute(at int64) int64 {
	if at < 0 {
		return (at+1)/minuteLength - 1
	}
	return at / minuteLength
}

// tick is one run.
func (s *player) tick(e event, day int) {
	s.sampling.to(s, e.at)
	l, p := &s.Lanes[e.lane], &s.lanes[e.lane]
	run := Run{Wanted: l.Pages - p.resumed(e.at)}
	for _, b := range s.buckets {
		b.wanted += run.Wanted * b.cost
	}
	switch {
	case !s.day.admits(s, e):
		run.Outcome, run.Limit = LeftOut, ShareName
	default:
		s.read(e, &run, p.spent < l.Floor)
	}
	s.day.done(e, run.Pages)
	p.spent += run.Pages * s.day.price()
	s.sampling.see()
	p.keep(e.at, run)
	p.today.count(run)
	if run.Lost() || s.Watch != nil {
		at := moment(e.at)
		run.Tick = schedule.Tick{Job: l.Job, Region: l.Region, Scheduled: at.Add(-l.Offset), At: at}
		s.lost(run, day)
		s.ended = s.Watch != nil && !s.Watch(run)
	}
}

// resumed is how many pages of the chart are there when the lane runs at a moment.
func (p *progress) resumed(at int64) int64 {
	if at-p.begun > fresh.Microseconds() {
		p.pages = 0
	}
	return p.pages
}

// keep notes what a run has got of the chart.
func (p *progress) keep(at int64, run Run) {
	if p.pages == 0 {
		p.begun = at
	}
	p.pages += run.Pages
	if run.Outcome == Complete {
		p.complete, p.pages = at, 0
	}
}

// read charges page after page until one is denied. A pace does not hold back what is unpaced.
func (s *player) read(e event, run *Run, unpaced bool) {
	for ; run.Pages < run.Wanted; run.Pages++ {
		n := e.at
		for _, b := range s.buckets {
			n = max(n, b.log.newest+1)
		}
		for _, b := range s.buckets {
			if !b.fits(n, unpaced) {
				s.deny(n, run, unpaced)
				return
			}
		}
		for _, b := range s.buckets {
			b.charge(n)
		}
	}
}

// deny says why, as a budget does: the limit that makes the page wait longest, the paces included.
func (s *player) deny(n int64, run *Run, unpaced bool) {
	run.Outcome = Denied
	if run.Pages > 0 {
		run.Outcome = Partial
	}
	v := verdict{at: n}
	for _, b := range s.buckets {
		b.lapse(n)
		b.judge(n, &v)
	}
	for _, b := range s.buckets {
		if v.at < quota.Never && !unpaced {
			b.judgePaces(n, &v)
		}
	}
	run.Limit = v.limit
	if v.at < quota.Never {
		run.RetryAt = moment(v.at)
	}
}
