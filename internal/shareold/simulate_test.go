package share

import (
	"errors"
	"fmt"
)

// eight regions, a tick every half hour, four pages of one unit: 1,536 units a day are wanted.
var eight = []string{"US", "GB", "DE", "FR", "IN", "BR", "AU", "CA"}

const halfHours, pages = 48, 4

// scene is a day to be played: a budget, the regions, and what happens to them.
type scene struct {
	budget  int64
	weights map[string]int64           // default 1
	floors  map[string]int64           // default 0
	joins   map[string]int64           // the first tick of a region that comes later
	real    map[string]int64           // pages that a chart really has, where they are fewer
	away    map[string][2]int64        // ticks that nobody did: from, to
	manual  map[int64]int64            // units that somebody else takes before a tick
	admit   func(d Day, lane int) bool // Day.Admit when nil
}

// played is how the day went.
type played struct {
	spent map[string]int64   // units
	ran   map[string][]int64 // ticks
	over  int64              // units nobody used
	kept  int64              // units kept for pages that the last runs turned out not to have
	cut   int                // runs that the budget ended before their last page
}

func (s scene) play() played {
	p := played{map[string]int64{}, map[string][]int64{}, s.budget, 0, 0}
	for _, real := range s.real {
		p.kept += pages - real
	}
	for tick := int64(1); tick <= halfHours; tick++ {
		p.over -= min(s.manual[tick], p.over)
		for _, region := range eight {
			away, gone := s.away[region]
			if tick < s.joins[region] || gone && tick >= away[0] && tick <= away[1] {
				continue
			}
			s.tick(&p, tick, region)
		}
	}
	return p
}

func (s scene) tick(p *played, tick int64, region string) {
	day, lane := s.day(p, tick, region)
	admit := s.admit
	if admit == nil {
		admit = func(d Day, lane int) bool { return d.Admit(lane).Run }
	}
	if !admit(day, lane) {
		return
	}
	cost := int64(pages)
	if real, ok := s.real[region]; ok {
		cost = real
	}
	if cost > p.over {
		p.cut++
		cost = p.over
	}
	p.over -= cost
	p.spent[region] += cost
	p.ran[region] = append(p.ran[region], tick)
}

// day is what a daemon sees that does the tick of a region: those before it in the list have had theirs.
func (s scene) day(p *played, tick int64, region string) (day Day, lane int) {
	day, lane = Day{Left: p.over}, -1
	for _, r := range eight {
		if tick < s.joins[r] {
			continue
		}
		l := Lane{Region: r, Weight: 1, Floor: s.floors[r], Spent: p.spent[r], Cost: pages, Ticks: halfHours, Remaining: halfHours - tick}
		if w, ok := s.weights[r]; ok {
			l.Weight = w
		}
		if r == region {
			lane = len(day.Lanes)
		}
		if lane >= 0 {
			l.Remaining++
		}
		day.Lanes = append(day.Lanes, l)
	}
	return day, lane
}

// firstCome runs whatever comes while there is anything left.
func firstCome(d Day, _ int) bool { return d.Left > 0 }

// fair checks a day against the units that each region should have had: within one run of them, none starved, served in the
// last quarter and no further from the end than its runs are from one another, nothing cut off, no run's worth of units left.
func fair(p played, want map[string]int64) error {
	var errs []error
	for _, r := range eight {
		if d := p.spent[r] - want[r]; d <= -pages || d >= pages {
			errs = append(errs, fmt.Errorf("%s spent %d units, its share is %d", r, p.spent[r], want[r]))
		}
		if len(p.ran[r]) == 0 {
			errs = append(errs, fmt.Errorf("%s never ran", r))
			continue
		}
		n := int64(len(p.ran[r]))
		if last := p.ran[r][n-1]; last <= max(halfHours*3/4, halfHours-(halfHours+n-1)/n) {
			errs = append(errs, fmt.Errorf("%s ran for the last time at tick %d of %d", r, last, halfHours))
		}
	}
	if p.cut > 0 {
		errs = append(errs, fmt.Errorf("%d runs were cut off", p.cut))
	}
	if p.over >= pages+p.kept {
		errs = append(errs, fmt.Errorf("%d units were not used", p.over))
	}
	return errors.Join(errs...)
}

// longestGap is the most ticks from one run of a region to its next, from the given tick on, the reset being one.
func (p played) longestGap(region string, from int64) (gap int64) {
	before := from - 1
	for _, tick := range append(p.ran[region], halfHours+1) {
		if tick >= from {
			gap = max(gap, tick-before)
			before = tick
		}
	}
	return gap
}

// each gives every region the same units, but for those named.
func each(units int64, but map[string]int64) map[string]int64 {
	want := make(map[string]int64)
	for _, r := range eight {
		want[r] = units
		if u, ok := but[r]; ok {
			want[r] = u
		}
	}
	return want
}
