package forecast

import (
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// bin is the length of time by which unscheduled spending is counted.
const bin = 10 * time.Minute

const (
	// remembers is the length of the history that is looked at: two days, so that each hour to come has been twice.
	remembers = 48 * time.Hour
	// quiet is how long a ledger that is younger is taken to have been quiet before it began.
	quiet = 6 * time.Hour
	// sized is of how many charges the sizes are kept.
	sized = 97
)

// Memory is how far back entries are needed to foretell buckets of these limits.
func Memory(limits []quota.Limit) time.Duration {
	longest := time.Duration(0)
	for _, l := range limits {
		longest = max(longest, l.Window.Longest())
	}
	return longest + remembers
}

// habit is how unscheduled spending has gone of late. Bins are counted backwards from now: bin 0 is the last ten minutes.
type habit struct {
	units  []float64 // in each bin
	blind  []bool    // the bin says nothing of what was wanted: the bucket was empty, or there was an incident
	sizes  []float64 // of charges
	budget float64   // the least that a limit allows
	clock  float64   // how likely it is that spending follows the hours of the day
	spell  int       // how many bins the present spell of high spending has lasted; 0 when there is none
	spells
}

// newHabit counts the unscheduled spending of the bucket's entries.
func newHabit(b Bucket) habit {
	free := unscheduled(b)
	h := habit{units: make([]float64, bins(b)), sizes: sizes(b.Entries, free), budget: budgetOf(b)}
	h.blind = make([]bool, len(h.units))
	for i, e := range b.Entries {
		if n := int(b.At.Sub(e.At) / bin); e.At.Compare(b.At) <= 0 && n < len(h.units) {
			h.units[n] += free[i]
		}
	}
	h.blindWhenEmpty(b)
	h.clock = h.byClock()
	h.findSpells()
	return h
}

// bins is how long the history is.
func bins(b Bucket) int {
	length := quiet
	if len(b.Entries) > 0 {
		length = min(remembers, max(quiet, b.At.Sub(b.Entries[0].At)))
	}
	return int(length / bin)
}

// unscheduled is the units of each entry that no schedule announced: of those whose job is none of the lanes', without what was
// drawn of the reservations that still stand, whose units are counted as set aside.
func unscheduled(b Bucket) []float64 {
	jobs := make(map[string]bool)
	for _, l := range b.Lanes {
		jobs[l.Job] = true
	}
	units := make([]float64, len(b.Entries))
	for i, e := range b.Entries {
		if !jobs[e.Labels[quota.LabelJob]] || e.Labels[quota.LabelJob] == "" {
			units[i] = float64(e.Units)
		}
	}
	for _, r := range b.Reservations {
		first := len(units)
		var sum float64
		for i := len(units) - 1; i >= 0 && b.Entries[i].At.After(r.CreatedAt); i-- {
			first, sum = i, sum+units[i]
		}
		if sum <= 0 {
			continue
		}
		rest := max(0, 1-float64(r.Drawn)/sum)
		for i := first; i < len(units); i++ {
			units[i] *= rest
		}
	}
	return units
}

// blindWhenEmpty finds the bins in which less was left than an ordinary charge takes.
func (h *habit) blindWhenEmpty(b Bucket) {
	log, ordinary := newSums(b.Entries), int64(max(1, math.Round(h.ordinary())))
	for _, l := range foretold(b) {
		after := b.At
		for i := range h.blind {
			begins := b.At.Add(-time.Duration(i+1) * bin)
			switch {
			case !l.Window.IsCalendar():
				after = begins.Add(-l.Window.Length)
			case !begins.After(after):
				start, _ := l.Window.Bounds(begins)
				after = start.Add(-time.Microsecond)
			}
			used := log.after(after.UnixMicro()) - log.after(begins.UnixMicro())
			h.blind[i] = h.blind[i] || used+ordinary > l.Cap(false)
		}
	}
}

// sizes are those of unscheduled charges: of all of them when they are few, otherwise of some, evenly from first to last.
func sizes(entries []quota.Entry, free []float64) []float64 {
	var all []float64
	for i, u := range free {
		if u > 0 {
			all = append(all, float64(entries[i].Units))
		}
	}
	some := make([]float64, min(len(all), sized))
	for i := range some {
		some[i] = all[(2*i+1)*len(all)/(2*len(some))]
	}
	return some
}

// ordinary is the mean size of a charge.
func (h *habit) ordinary() float64 {
	sum := 0.0
	for _, s := range h.sizes {
		sum += s
	}
	return sum / float64(max(1, len(h.sizes)))
}

// grain is the size of equal charges that would come as unevenly as those in the bins do: their variance for each unit of their
// mean, from one bin to the next, so that a habit that changes is not taken for an uneven one.
func (h *habit) grain(bins []int) float64 {
	square, sum := 0.0, 0.0
	for i := 1; i < len(bins); i++ {
		step := h.units[bins[i]] - h.units[bins[i-1]]
		square, sum = square+step*step/2, sum+h.units[bins[i]]
	}
	if sum > 0 {
		return max(1, h.ordinary(), square/sum)
	}
	return max(1, h.ordinary())
}

// budgetOf is the least that a limit allows.
func budgetOf(b Bucket) float64 {
	least := int64(quota.MaxUnits)
	for _, l := range foretold(b) {
		least = min(least, l.Cap(false))
	}
	return float64(least)
}

// median of the bins that are not blind.
func (h *habit) median() float64 {
	var seen []float64
	for _, i := range h.seen() {
		seen = append(seen, h.units[i])
	}
	if len(seen) == 0 {
		return 0
	}
	slices.Sort(seen)
	return seen[len(seen)/2]
}
