// Package plan simulates a schedule under limits, without a ledger, a clock or waiting. It reports
// what the schedule will spend, which schedule would fit, and when a bucket will run dry.
//
// Worked example: two lanes of 4 pages every hour, 30 units in any 4 h, from midnight.
//
//	00:00 US 4  BR 8     01:00 US 12  BR 16     02:00 US 20  BR 24
//	03:00 US 28  BR: 2 pages, then denied
//	04:00 the 4 + 4 of midnight leave at this very moment, US 26, BR 30
//
// A denied run leaves its chart to the lane's next run. The next run wants only the missing pages
// if it comes within a quarter of an hour of the first page; otherwise it begins a new chart. If BR
// above had ticks every 10 minutes:
//
//	18:00 BR: 2 pages, then denied
//	18:10 wants the other 2, and is denied
//	18:20 begins again, and wants 4
//
// The rule of package quota decides, on buckets in memory. For an anchored window, a plan uses the
// end that the upstream last reported; after that end, the window slides. While units are short,
// package share decides which ticks run, as in a daemon. A plan does not include slow responses, or
// charts interrupted before it begins. Runs take no time, so concurrent limits do not apply. Of
// lanes that tick at one moment, the one served longest ago goes first.
package plan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// Plan is a schedule with its budget and a start. Its fields are set before use.
type Plan struct {
	Lanes  []share.Lane
	Price  []quota.Cost  // cost of a page for lanes without a price
	Limits []quota.Limit // limits of buckets without a price are ignored
	// Throttles and Paces only hold runs back. A pace does not hold back a run below its lane's
	// floor of the day.
	Throttles []quota.Limit
	Unplayed  []string      // names of limits that the plan leaves out
	Paces     []quota.Limit // each with a Pace
	Reset     quota.Window  // the upstream's day
	From      time.Time     // ticks at From or later
	To        time.Time     // ticks before To
	Before    []Standing    // the ledger's state; nil if the ledger is empty

	Step  time.Duration  // between the points of the series; 0 for no series
	Watch func(Run) bool // called with each run in order; false ends the plan. May be nil
}

// Buckets returns the buckets that the lanes use, in the order of their prices.
func (p *Plan) Buckets() (names []string) {
	add := func(price []quota.Cost) {
		for _, cost := range price {
			if !slices.Contains(names, cost.Bucket) {
				names = append(names, cost.Bucket)
			}
		}
	}
	add(p.Price)
	for i := range p.Lanes {
		add(p.Lanes[i].Price)
		add(p.Lanes[i].LearnedCosts)
	}
	return names
}

// Execute plays the whole plan. The result is the same every time.
func (p *Plan) Execute() Report {
	r := newRecorder(p)
	for from := p.From; from.Before(p.To) && !r.ended; {
		start, end := p.Reset.Bounds(from)
		to := end
		if to.After(p.To) {
			to = p.To
		}
		r.record(from, to, Day{Start: start.UTC(), End: end.UTC()})
		from = end
	}
	r.report.Collisions = r.crowd.collisions
	slices.SortStableFunc(r.report.Collisions, func(a, b Collision) int {
		return b.Times*b.Ticks - a.Times*a.Ticks
	})
	return r.report
}

// recorder collects the report while a plan is played.
type recorder struct {
	*Plan
	play   *Play
	report Report
	unused []Use    // the limits without any use
	counts []Counts // of the day, by lane
	uses   []Use    // of the day
	used   []int64  // of each limit, for raisePeaks and step
	crowd  crowd
	next   int64 // start of the next step of the series, in µs
	ended  bool
}

func newRecorder(p *Plan) *recorder {
	r := &recorder{Plan: p, play: p.Play(), next: p.From.UnixMicro(),
		crowd: crowd{lanes: p.Lanes, indexes: make(map[string]int)}}
	r.report.From, r.report.To = p.From, p.To
	for _, l := range r.play.Windows() {
		r.unused = append(r.unused, Use{Limit: l, Cap: l.Cap(false), Margin: math.MaxInt64})
		if p.Step > 0 {
			r.report.Series = append(r.report.Series,
				Series{Limit: l, Cap: l.Cap(false), Start: p.From, Step: p.Step})
		}
	}
	for _, l := range p.Lanes {
		r.report.Lanes = append(r.report.Lanes, LaneUse{LaneID: l.LaneID})
	}
	r.report.Windows = slices.Clone(r.unused)
	return r
}

// record plays a part of an upstream day.
func (r *recorder) record(from, to time.Time, day Day) {
	first := len(r.report.Days)
	for _, day.Bucket = range r.Buckets() {
		r.report.Days = append(r.report.Days, day)
	}
	days := r.report.Days[first:]
	r.counts, r.uses = make([]Counts, len(r.Lanes)), slices.Clone(r.unused)
	r.raisePeaks(from.UnixMicro())
	end := to.UnixMicro()
	for at, ok := r.play.Next(); ok && at < end && !r.ended; at, ok = r.play.Next() {
		r.step(at)
		run := r.play.Run()
		if run.Pages > 0 {
			r.raisePeaks(at)
		}
		r.counts[run.Lane].count(run)
		r.crowd.add(run, days)
		r.watch(run, days)
	}
	r.crowd.flush(days)
	r.step(end)
	r.close(days)
}

// step adds the steps of the series up to a moment, each with the use at its start, before any
// charge at that moment.
func (r *recorder) step(at int64) {
	for len(r.report.Series) > 0 && r.next <= at && r.next < r.To.UnixMicro() {
		r.used = r.play.Used(r.next, r.used)
		for i, use := range r.used {
			s := &r.report.Series[i]
			s.Use = append(s.Use, use)
		}
		r.next += r.Step.Microseconds()
	}
}

// raisePeaks raises the peaks to the use at a moment.
func (r *recorder) raisePeaks(at int64) {
	r.used = r.play.Used(at, r.used)
	for i, use := range r.used {
		capacity := r.unused[i].Limit.CapAt(moment(at), false, false)
		r.uses[i].raisePeak(use, at, capacity)
		r.report.Windows[i].raisePeak(use, at, capacity)
		if r.Step > 0 {
			if steps := r.report.Series[i].Use; len(steps) > 0 {
				last := &steps[len(steps)-1]
				*last = max(*last, use)
			}
		}
	}
}

// watch passes a run to Watch, and keeps the first lost one.
func (r *recorder) watch(run Run, days []Day) {
	if run.Lost() {
		lost := new(run)
		r.report.First = cmp.Or(r.report.First, lost)
		for i := range days {
			days[i].First = cmp.Or(days[i].First, lost)
		}
	}
	r.ended = r.Watch != nil && !r.Watch(run)
}

func (r *recorder) close(days []Day) {
	var all Counts
	var losing []LaneUse
	for i, c := range r.counts {
		all.add(c)
		r.report.Lanes[i].add(c)
		if c.Lost() > 0 {
			losing = append(losing, LaneUse{r.Lanes[i].LaneID, c})
		}
	}
	r.report.Counts.add(all)
	for i := range days {
		d := &days[i]
		for lane, c := range r.counts {
			l := &r.Lanes[lane]
			d.Planned += l.Takes(d.Bucket, c.Wanted, r.Price)
			d.Spent += l.Takes(d.Bucket, c.Pages, r.Price)
		}
		d.Counts, d.Losing = all, losing
		for _, u := range r.uses {
			if u.Limit.Bucket == d.Bucket {
				d.Windows = append(d.Windows, u)
			}
		}
	}
}
