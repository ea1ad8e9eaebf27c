package forecast

import (
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// bin is the length of time by which unscheduled spending is counted.
const bin = 10 * time.Minute

// The history that is looked at: its length, and how long a ledger that is younger is taken to have been quiet before it began.
// Ordinary spending counts half at the age of calmHalf. Bursts are rarer, and count for longer.
const (
	remembers = 24 * time.Hour
	quiet     = 6 * time.Hour
	calmHalf  = 4 * time.Hour
	burstHalf = 8 * time.Hour
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
	units []float64 // in each bin
	blind []bool    // the bin says nothing of what was wanted: the bucket was empty, or a spell had gone on for too long
	spell int       // how many bins the present spell of high spending has lasted; 0 when there is none
	spells
}

// newHabit counts the unscheduled spending of the bucket's entries.
func newHabit(b Bucket) habit {
	free := unscheduled(b)
	h := habit{units: make([]float64, bins(b))}
	h.blind = make([]bool, len(h.units))
	for i, e := range b.Entries {
		if n := int(b.At.Sub(e.At) / bin); e.At.Compare(b.At) <= 0 && n < len(h.units) {
			h.units[n] += free[i]
		}
	}
	h.blindWhenEmpty(b)
	h.findSpells(budgetOf(b))
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

// blindWhenEmpty finds the bins in which nothing was left for those who wanted.
func (h *habit) blindWhenEmpty(b Bucket) {
	log := newSums(b.Entries)
	for i := range h.blind {
		begins := b.At.Add(-time.Duration(i+1) * bin)
		for _, l := range foretold(b) {
			after := begins.Add(-l.Window.Length)
			if l.Window.IsCalendar() {
				start, _ := l.Window.Bounds(begins)
				after = start.Add(-time.Microsecond)
			}
			used := log.after(after.UnixMicro()) - log.after(begins.UnixMicro())
			h.blind[i] = h.blind[i] || used >= l.Cap(false)
		}
	}
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
	for i, u := range h.units {
		if !h.blind[i] {
			seen = append(seen, u)
		}
	}
	if len(seen) == 0 {
		return 0
	}
	slices.Sort(seen)
	return seen[len(seen)/2]
}
