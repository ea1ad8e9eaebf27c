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
		add(p.Lanes[i].Took)
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
	return r.finish()
}

// recorder collects the report while a plan is played.
type recorder struct {
	*Plan
	play   *Play
	report Report
	counts []Counts // of the day, by lane
	used   []int64  // of each limit after the last run
	peaks  []peak   // of the day, by limit
	all    []peak   // of the whole plan
	crowd  crowd
	series series
	ended  bool
}

func newRecorder(p *Plan) *recorder {
	r := &recorder{Plan: p, play: p.Play(), counts: make([]Counts, len(p.Lanes))}
	r.report.From, r.report.To = p.From, p.To
	for _, l := range r.play.Windows() {
		r.report.Windows = append(r.report.Windows, Use{Limit: l, Cap: l.Cap(false)})
		r.all = append(r.all, noPeak)
	}
	for _, l := range p.Lanes {
		r.report.Lanes = append(r.report.Lanes, LaneUse{Job: l.Job, Region: l.Region})
	}
	r.peaks = slices.Clone(r.all)
	r.crowd = crowd{lanes: p.Lanes, known: make(map[string]int)}
	r.series = newSeries(r)
	return r
}

// record plays a part of an upstream day.
func (r *recorder) record(from, to time.Time, day Day) {
	first := len(r.report.Days)
	for _, day.Bucket = range r.Buckets() {
		r.report.Days = append(r.report.Days, day)
	}
	days := r.report.Days[first:]
	clear(r.counts)
	for i := range r.peaks {
		r.peaks[i] = noPeak
	}
	r.see(from.UnixMicro())
	end := to.UnixMicro()
	for at, ok := r.play.Next(); ok && at < end && !r.ended; at, ok = r.play.Next() {
		r.series.begin(r.play, at)
		run := r.play.Run()
		if run.Pages > 0 {
			r.see(at)
			r.series.raise(r.used)
		}
		r.counts[run.Lane].count(run)
		r.crowd.add(run, days)
		r.watch(run, days)
	}
	r.crowd.flush(days)
	r.series.begin(r.play, end)
	r.close(days)
}

// see updates the day's peaks with the use at a moment.
func (r *recorder) see(at int64) {
	r.used = r.play.Used(at, r.used)
	for i, use := range r.used {
		r.peaks[i].see(use, at, r.report.Windows[i].Limit.CapAt(moment(at), false, false))
	}
}

// watch passes a run to Watch, and keeps the first lost one.
func (r *recorder) watch(run Run, days []Day) {
	if run.Lost() {
		if r.report.First == nil {
			r.report.First = new(run)
		}
		for i := range days {
			if days[i].First == nil {
				days[i].First = new(run)
			}
		}
	}
	r.ended = r.Watch != nil && !r.Watch(run)
}

// close adds up a day.
func (r *recorder) close(days []Day) {
	var all Counts
	var losing []LaneUse
	for i, c := range r.counts {
		all.add(c)
		r.report.Lanes[i].add(c)
		if c.Lost() > 0 {
			losing = append(losing, LaneUse{r.Lanes[i].Job, r.Lanes[i].Region, c})
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
		for j, u := range r.report.Windows {
			if u.Limit.Bucket == d.Bucket {
				d.Windows = append(d.Windows, u.at(r.peaks[j]))
			}
		}
	}
	for i, p := range r.peaks {
		r.all[i].see(p.use, p.at, p.use+p.margin)
	}
}

func (r *recorder) finish() Report {
	for i, u := range r.report.Windows {
		r.report.Windows[i] = u.at(r.all[i])
	}
	r.report.Collisions = r.crowd.sorted()
	r.report.Series = r.series.all
	return r.report
}
