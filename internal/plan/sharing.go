package plan

import (
	"math"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// sharing decides which ticks run while units are short, as a daemon does: over the days of the default bucket's limits.
type sharing struct {
	bucket *bucket
	days   []shared
}

// shared is one calendar limit of a day, and what its lanes want of it.
type shared struct {
	window *window
	end    int64 // of the day that lanes are of
	lanes  []share.Lane
	wanted int64 // units, by all ticks to come
}

func newSharing(s *player) sharing {
	var g sharing
	for _, b := range s.buckets {
		if b.name != quota.DefaultBucket {
			continue
		}
		g.bucket = b
		for i := range b.windows {
			w := &b.windows[i]
			if w.limit.Window.Calendar != "day" || w.limit.Pace != nil {
				continue
			}
			d := shared{window: w, end: math.MinInt64, lanes: make([]share.Lane, len(s.Lanes))}
			for j, l := range s.Lanes {
				d.lanes[j] = share.Lane{Region: l.Region, Weight: l.Weight, Floor: l.Floor, Cost: l.Pages * b.cost}
			}
			g.days = append(g.days, d)
		}
	}
	return g
}

// admits says whether the lane's share lets it run.
func (g *sharing) admits(s *player, e event) bool {
	if len(g.days) == 0 {
		return true
	}
	b := g.bucket
	b.lapse(e.at)
	var tightest *shared
	var least int64
	for i := range g.days {
		d := &g.days[i]
		left := max(0, d.window.most-d.window.used(&b.log, e.at)-b.held)
		if e.at >= d.end {
			d.begin(s, e.at)
		}
		if tightest == nil || left < least {
			tightest, least = d, left
		}
	}
	if tightest.wanted <= least {
		return true
	}
	return share.Day{Left: least, Lanes: tightest.lanes}.Admit(int(e.lane)).Run
}

// begin takes up the day that holds at. Ticks of it that were before the plan began are done.
func (d *shared) begin(s *player, at int64) {
	start, end := d.window.limit.Window.Bounds(moment(at))
	d.end, d.wanted = end.UnixMicro(), 0
	planned := start
	if s.From.After(start) {
		planned = s.From
	}
	for i := range d.lanes {
		l := &d.lanes[i]
		l.Remaining = count(s.Lanes[i], planned, end)
		l.Ticks = l.Remaining + count(s.Lanes[i], start, planned)
		l.Spent = s.spentBefore(i, start)
		d.wanted += l.Remaining * l.Cost
	}
}

// count is the ticks from one moment to just before another.
func count(l Lane, from, to time.Time) (n int64) {
	for range l.Ticks(from.Add(-time.Nanosecond), to.Add(-time.Nanosecond)) {
		n++
	}
	return n
}

// spentBefore is what a lane had spent of the day when the plan began, by the labels of the log.
func (s *player) spentBefore(lane int, start time.Time) (units int64) {
	if !s.From.After(start) {
		return 0
	}
	for _, known := range s.Before {
		if known.Bucket != quota.DefaultBucket {
			continue
		}
		for _, e := range known.Entries {
			if !e.At.Before(start) && e.Labels[quota.LabelRegion] == s.Lanes[lane].Region && e.Labels[quota.LabelJob] == s.Lanes[lane].Job {
				units += e.Units
			}
		}
	}
	return units
}

// done takes a tick off those to come.
func (g *sharing) done(e event, pages int64) {
	for i := range g.days {
		d := &g.days[i]
		l := &d.lanes[e.lane]
		l.Remaining--
		l.Spent += pages * g.bucket.cost
		d.wanted -= l.Cost
	}
}
