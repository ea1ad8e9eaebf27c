package forecast

import (
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// bin is the length of time by which unscheduled spending is counted.
const bin = quota.Grain

const (
	// remembers is the length of the history that is looked at: two days, so that each hour to come
	// has been twice.
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

// habit is how unscheduled spending has gone of late. Bins are counted backwards from now.
type habit struct {
	units  []float64 // in each bin
	blind  []bool    // the bin says nothing of what was wanted: the bucket was empty, or there was an incident
	sizes  []float64 // of charges
	budget float64   // the least that a limit allows
	clock  float64   // how likely it is that spending follows the hours of the day
	last   time.Time // when bin 0 began
	surge  int       // how many bins the present surge of spending has lasted; 0 when there is none
	surges
}

// newHabit counts the unscheduled spending of the bucket. Its bins are the grains of the ledger's
// sums, but for the last: that is as long as has passed of the grain under way, or by that longer
// than one.
func newHabit(b Bucket) habit {
	free := unscheduled(b)
	h := habit{units: make([]float64, bins(b)), sizes: sizes(b.Spent, free), budget: budgetOf(b), last: lastBin(b.At)}
	h.blind = make([]bool, len(h.units))
	for i, e := range b.Spent {
		if n := h.binOf(e.At); n < len(h.units) {
			h.units[n] += free[i]
		}
	}
	h.units[0] *= float64(bin) / float64(b.At.Sub(h.last))
	h.blindWhenEmpty(b)
	h.clock = h.byClock()
	h.findSurges()
	return h
}

// lastBin is when the last bin began: half a grain ago at least.
func lastBin(now time.Time) time.Time {
	last := quota.GrainOf(now)
	if now.Sub(last) < bin/2 {
		last = last.Add(-bin)
	}
	return last
}

// binOf is the bin that a moment lies in.
func (h *habit) binOf(at time.Time) int {
	if !at.Before(h.last) {
		return 0
	}
	return 1 + int((h.last.Sub(at)-1)/bin)
}

// bins is how long the history is.
func bins(b Bucket) int {
	length := quiet
	if len(b.Spent) > 0 {
		length = min(remembers, max(quiet, b.At.Sub(b.Spent[0].At)))
	}
	return int(length / bin)
}

// unscheduled is the units that no schedule announced: those whose job is none of the lanes',
// without what was drawn of the reservations that still stand, whose units are counted as set
// aside.
func unscheduled(b Bucket) []float64 {
	jobs := make(map[string]bool)
	for _, l := range b.Lanes {
		jobs[l.Job] = true
	}
	units := make([]float64, len(b.Spent))
	for i, e := range b.Spent {
		if !jobs[e.Labels[quota.LabelJob]] || e.Labels[quota.LabelJob] == "" {
			units[i] = float64(e.Units)
		}
	}
	for _, r := range b.Reservations {
		first := len(units)
		var sum float64
		for i := len(units) - 1; i >= 0 && b.Spent[i].At.After(r.CreatedAt); i-- {
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
	total := make([]int64, len(b.Spent)+1) // running
	for i, e := range b.Spent {
		total[i+1] = total[i] + e.Units
	}
	upTo := func(t time.Time) int64 { // and with t
		n, _ := slices.BinarySearchFunc(b.Spent, t, func(e quota.Spent, t time.Time) int {
			if e.At.After(t) {
				return 1
			}
			return -1
		})
		return total[n]
	}
	ordinary := int64(max(1, math.Round(h.ordinary())))
	limits, _ := split(b)
	for _, l := range limits {
		after := b.At
		for i := range h.blind {
			begins := h.last.Add(-time.Duration(i) * bin)
			switch {
			case !l.Window.IsCalendar():
				after = begins.Add(-l.Window.Length)
			case !begins.After(after):
				start, _ := l.Window.Bounds(begins)
				after = start.Add(-time.Microsecond)
			}
			used := upTo(begins.Add(-1)) - upTo(after)
			h.blind[i] = h.blind[i] || used+ordinary > l.Cap(false)
		}
	}
}

// sizes are those of unscheduled charges: of all of them when they are few, otherwise of some,
// evenly from first to last. Of charges that are summed up, each has their mean size.
func sizes(spent []quota.Spent, free []float64) (some []float64) {
	total := int64(0)
	for i, u := range free {
		if u > 0 {
			total += max(1, spent[i].Charges)
		}
	}
	n, past := min(total, sized), int64(0)
	for i, u := range free {
		if u > 0 {
			past += max(1, spent[i].Charges)
		}
		for u > 0 && int64(len(some)) < n && (2*int64(len(some))+1)*total/(2*n) < past {
			some = append(some, max(1, float64(spent[i].Units)/float64(max(1, spent[i].Charges))))
		}
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

// grain is the size of equal charges that would come as unevenly as those in the bins do: their
// variance for each unit of their mean, from one bin to the next, so that a habit that changes is
// not taken for an uneven one.
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
	limits, _ := split(b)
	for _, l := range limits {
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
