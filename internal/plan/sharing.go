package plan

import (
	"iter"
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
	share "quotabudget/internal/shareold"
)

// sharing decides which ticks run while units are short, as a daemon does: over the stretch that the tightest of the default
// bucket's limits leaves least of.
type sharing struct {
	bucket *bucket
	lanes  []share.Lane // without what differs from stretch to stretch
	days   []shared
	slides []*window // sliding ones that are shared
	ahead  []ahead   // of each lane, while there are slides
	spent  []log     // by each lane, likewise
	today  today
}

// shared is one calendar limit of a day, and what its lanes want of it.
type shared struct {
	window *window
	end    int64 // of the day that lanes are of
	lanes  []share.Lane
	wanted int64 // units, by all ticks to come
}

func newSharing(s *player) *sharing {
	g := new(sharing)
	for _, b := range s.buckets {
		if b.name != quota.DefaultBucket {
			continue
		}
		g.bucket = b
		for _, l := range s.Lanes {
			g.lanes = append(g.lanes, share.Lane{Region: l.Region, Weight: l.Weight, Priority: l.Priority, Floor: l.Floor, Cost: l.Pages * b.cost})
		}
		for i := range b.windows {
			w := &b.windows[i]
			switch {
			case w.limit.Pace != nil:
			case w.limit.Window.Calendar == "day":
				g.days = append(g.days, shared{window: w, end: math.MinInt64, lanes: slices.Clone(g.lanes)})
			case w.limit.Window.Length >= share.Shortest:
				g.slides = append(g.slides, w)
			}
		}
	}
	if len(g.slides) > 0 {
		g.lookAhead(s)
	}
	return g
}

// admits says whether the lane's share lets it run.
func (g *sharing) admits(s *player, e event) bool {
	if len(g.days)+len(g.slides) == 0 {
		return true
	}
	g.bucket.lapse(e.at)
	calendar := g.day(s, e.at)
	sliding := g.slide(s, e.at)
	var day share.Day
	switch {
	case calendar == nil && sliding == nil:
		return true
	case calendar == nil, sliding != nil && sliding.Overrules(calendar.stretch(g, e.at)):
		if sliding.Wanted <= sliding.Left {
			return true
		}
		day = g.divide(*sliding)
	default:
		at := calendar.stretch(g, e.at)
		if at.Wanted <= at.Left {
			return true
		}
		day = share.Day{Left: at.Left, Lanes: calendar.lanes}
	}
	day.Later = max(0, day.Left-g.free(e.at))
	return day.Admit(int(e.lane)).Run
}

// day is the calendar limit that is shortest of units; nil when there is none.
func (g *sharing) day(s *player, at int64) *shared {
	var shortest *shared
	for i := range g.days {
		d := &g.days[i]
		if at >= d.end {
			d.window.used(&g.bucket.log, at) // moves it on
			d.begin(s, at)
		}
		if shortest == nil || d.stretch(g, at).Shorter(shortest.stretch(g, at)) {
			shortest = d
		}
	}
	return shortest
}

// stretch is what is left until the reset.
func (d *shared) stretch(g *sharing, at int64) share.Stretch {
	return share.Stretch{Left: g.left(d.window, at), Wanted: d.wanted}
}

// left is what a limit leaves for scheduled charges.
func (g *sharing) left(w *window, at int64) int64 {
	return max(0, w.most-w.used(&g.bucket.log, at)-g.bucket.held)
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
	for e := range s.scheduledBefore(lane) {
		if !e.At.Before(start) {
			units += e.Units
		}
	}
	return units
}

// scheduledBefore are the entries of a lane's region before the plan began, by any of the jobs.
func (s *player) scheduledBefore(lane int) iter.Seq[quota.Entry] {
	return func(yield func(quota.Entry) bool) {
		for _, known := range s.Before {
			if known.Bucket != quota.DefaultBucket {
				continue
			}
			for _, e := range known.Entries {
				ours := slices.ContainsFunc(s.Lanes, func(l Lane) bool { return l.Job == e.Labels[quota.LabelJob] })
				if ours && e.Labels[quota.LabelRegion] == s.Lanes[lane].Region && !yield(e) {
					return
				}
			}
		}
	}
}

// price is what a page takes from the bucket that is shared.
func (g *sharing) price() int64 {
	if g.bucket == nil {
		return 0
	}
	return g.bucket.cost
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
	if len(g.slides) > 0 {
		g.ahead[e.lane].done++
		g.today.done[e.lane]++
		if pages > 0 {
			g.spent[e.lane].add(e.at, pages*g.bucket.cost)
		}
	}
}
