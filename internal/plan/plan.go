// Package plan reports what a schedule will spend. It simulates the lanes under limits with
// package sim, and sums up the runs.
package plan

import (
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
	"quotabudget/internal/sim"
)

// Plan is a schedule with its budget and a start. Its fields are set before Execute. The fields
// up to Before are those of a sim.Scenario.
type Plan struct {
	Lanes    []share.Lane
	Price    []quota.Cost // of a page of lanes without a price
	Limits   []quota.Limit
	Paces    []quota.Limit
	Reset    quota.Window
	From, To time.Time
	Before   []sim.Standing

	Step  time.Duration  // between the points of the series; 0 for no series
	Watch func(Run) bool // called with each run in order; false ends the plan. May be nil
}

// Run is one simulated tick.
type Run struct {
	schedule.Tick
	Outcome sim.Outcome
	Pages   int64     // pages it gets
	Wanted  int64     // pages of the chart, less those an earlier run got
	Limit   string    // what denied more, as in sim.Run
	RetryAt time.Time // when the next page would fit; zero if not known
}

// Lost reports whether the run gets less than it wants.
func (r Run) Lost() bool { return r.Outcome != sim.Complete }

// Buckets returns the buckets that the runs use.
func (p *Plan) Buckets() []string {
	return (&sim.Scenario{Lanes: p.Lanes, Price: p.Price}).Buckets()
}

// Execute executes the plan. The result is the same every time.
func (p *Plan) Execute() Report {
	s := sim.Scenario{
		Lanes: p.Lanes, Price: p.Price, Limits: p.Limits, Paces: p.Paces, Reset: p.Reset,
		From: p.From, To: p.To, Before: p.Before,
	}
	t := newRecorder(p, s.Prepare())
	for _, day := range t.course.Days() {
		if !t.ended {
			t.record(day)
		}
	}
	return t.finish()
}

type recorder struct {
	*Plan
	course *sim.Course
	play   *sim.Play
	report Report
	today  []Counts // by lane
	ever   []sim.Peak
	crowd  crowd
	series series
	ended  bool
}

func newRecorder(p *Plan, c *sim.Course) *recorder {
	t := &recorder{Plan: p, course: c, play: c.Play(), today: make([]Counts, len(p.Lanes))}
	t.report.From, t.report.To = p.From, p.To
	for _, l := range c.Windows() {
		t.report.Windows = append(t.report.Windows, Use{Limit: l, Cap: l.Cap(false)})
		t.ever = append(t.ever, sim.NoPeak())
	}
	for _, l := range p.Lanes {
		t.report.Lanes = append(t.report.Lanes, LaneUse{Job: l.Job, Region: l.Region})
	}
	t.crowd = crowd{lanes: p.Lanes, known: make(map[string]int)}
	t.series = newSeries(t)
	return t
}

// record simulates the planned part of an upstream day.
func (t *recorder) record(day sim.Day) {
	first := len(t.report.Days)
	for _, bucket := range t.course.Buckets() {
		d := Day{Bucket: bucket, Start: day.Start.UTC(), End: day.End.UTC()}
		t.report.Days = append(t.report.Days, d)
	}
	days := t.report.Days[first:]
	clear(t.today)
	t.play.ClearPeaks(day.From.UnixMicro())
	end := day.To.UnixMicro()
	for at, ok := t.play.Next(); ok && at < end && !t.ended; at, ok = t.play.Next() {
		t.series.begin(t.play, at)
		run := t.play.Run()
		t.series.raise(t.play, at)
		t.today[run.Lane].count(run)
		t.crowd.add(run, days)
		if run.Lost() || t.Watch != nil {
			t.watch(run, days)
		}
	}
	t.crowd.flush(days)
	t.series.begin(t.play, end)
	t.close(days)
}

// watch passes a run to Watch, and keeps the first lost one.
func (t *recorder) watch(r sim.Run, days []Day) {
	run := Run{Tick: t.course.Tick(r), Outcome: r.Outcome, Pages: r.Pages, Wanted: r.Wanted,
		Limit: r.Limit}
	if r.RetryAt != 0 {
		run.RetryAt = moment(r.RetryAt)
	}
	if run.Lost() {
		if t.report.First == nil {
			t.report.First = &run
		}
		for i := range days {
			if days[i].First == nil {
				days[i].First = &run
			}
		}
	}
	t.ended = t.Watch != nil && !t.Watch(run)
}

func (t *recorder) close(days []Day) {
	var all Counts
	var losing []LaneUse
	for i, c := range t.today {
		all.add(c)
		t.report.Lanes[i].add(c)
		if c.Lost() > 0 {
			losing = append(losing, LaneUse{t.Lanes[i].Job, t.Lanes[i].Region, c})
		}
	}
	t.report.Counts.add(all)
	peaks := t.play.Peaks()
	for i := range days {
		d := &days[i]
		for lane, c := range t.today {
			l := &t.Lanes[lane]
			d.Planned += l.Takes(d.Bucket, c.Wanted, t.Price)
			d.Spent += l.Takes(d.Bucket, c.Pages, t.Price)
		}
		d.Counts, d.Losing = all, losing
		for j, u := range t.report.Windows {
			if u.Limit.Bucket == d.Bucket {
				d.Windows = append(d.Windows, u.of(peaks[j]))
			}
		}
	}
	for i, p := range peaks {
		t.ever[i].See(p.Use, p.At, p.Use+p.Margin)
	}
}

func (t *recorder) finish() Report {
	for i, u := range t.report.Windows {
		t.report.Windows[i] = u.of(t.ever[i])
	}
	t.report.Collisions = t.crowd.sorted()
	t.report.Series = t.series.all
	return t.report
}

func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
