package forecast

import (
	"time"

	"quotabudget/internal/quota"
)

// bin is the length of time by which unscheduled spending is counted.
const bin = quota.Grain

const (
	// remembers is the length of the history that is looked at: two days, so that each hour to come
	// has been twice.
	remembers = 48 * time.Hour
	// mostRemembered is that of a week or a month to come, so that each day of the week has been
	// twice.
	mostRemembered = 14 * 24 * time.Hour
	// quiet is how long a ledger that is younger is taken to have been quiet before it began.
	quiet = 6 * time.Hour
)

// Memory is how far back entries are needed for a forecast under these limits.
func Memory(limits []quota.Limit) time.Duration {
	longest := time.Duration(0)
	for _, l := range limits {
		longest = max(longest, l.Reach())
	}
	return longest + history(longest)
}

// history is how much of the log tells of so much time to come.
func history(ahead time.Duration) time.Duration {
	if ahead > remembers {
		return mostRemembered
	}
	return remembers
}

// habit is how unscheduled spending has gone of late. Bins are counted backwards from now.
type habit struct {
	units  []float64 // in each bin
	size   float64   // of a charge, on the average
	budget float64   // the least that a limit allows
	clock  float64   // how likely it is that spending follows the hours of the day
	last   time.Time // when bin 0 began
	surges
}

// newHabit counts the unscheduled spending of the bucket. Its bins are the grains of the ledger's
// sums, but for the last: that is as long as has passed of the current grain, or by that longer
// than one.
func newHabit(b Bucket) habit {
	free := unscheduled(b)
	h := habit{units: make([]float64, bins(b)), budget: budgetOf(b), last: lastBin(b.At)}
	charges := int64(0)
	for i, e := range b.Spent {
		if free[i] > 0 {
			charges, h.size = charges+max(1, e.Charges), h.size+float64(e.Units)
		}
		if n := h.binOf(e.At); n < len(h.units) {
			h.units[n] += free[i]
		}
	}
	h.size = max(1, h.size/float64(max(1, charges)))
	h.units[0] *= float64(bin) / float64(b.At.Sub(h.last))
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
		length = min(history(ahead(b)), max(quiet, b.At.Sub(b.Spent[0].At)))
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

// grain is the size of equal charges that would come as unevenly as those in the bins do: their
// variance for each unit of their mean, from one bin to the next, so that a habit that changes is
// not taken for an uneven one. It is that of a charge at least.
func grain(units []float64, charge float64) float64 {
	square, sum := 0.0, 0.0
	for i := 1; i < len(units); i++ {
		step := units[i] - units[i-1]
		square, sum = square+step*step/2, sum+units[i]
	}
	if sum > 0 {
		return max(charge, square/sum)
	}
	return charge
}

// budgetOf is the least that a limit allows; of a week or a month, in a day of it.
func budgetOf(b Bucket) float64 {
	least := float64(quota.MaxUnits)
	limits, _ := split(b)
	for _, l := range limits {
		units := float64(l.Cap(false))
		if l.Window.IsCalendar() && l.Reach() > remembers {
			units /= l.Reach().Truncate(24*time.Hour).Hours() / 24
		}
		least = min(least, units)
	}
	return least
}

// ahead is how long the longest calendar window is that the forecast may go to the end of.
func ahead(b Bucket) time.Duration {
	calendar, _, _ := horizon(b)
	return calendar.Longest()
}
