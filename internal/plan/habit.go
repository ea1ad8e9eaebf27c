package plan

import (
	"time"

	"quotabudget/internal/quota"
)

// bin is the interval over which unscheduled spending is summed.
const bin = quota.Grain

const (
	// minHistory is the length of the history for a day ahead. It contains each hour of the day
	// twice.
	minHistory = 48 * time.Hour
	// maxHistory is the length of the history for a week or a month ahead. It contains each
	// weekday twice.
	maxHistory = 14 * 24 * time.Hour
	// assumedQuiet is the time without spending that a forecast assumes before the first entry of a
	// ledger that is younger than the history.
	assumedQuiet = 6 * time.Hour
)

// Memory returns how far back a forecast under these limits needs entries.
func Memory(limits []quota.Limit) time.Duration {
	longest := time.Duration(0)
	for _, l := range limits {
		longest = max(longest, l.Reach())
	}
	return longest + history(longest)
}

// history returns the length of the log to use for a time ahead.
func history(ahead time.Duration) time.Duration {
	if ahead > minHistory {
		return maxHistory
	}
	return minHistory
}

// habit describes recent unscheduled spending. Bins are counted backwards from now.
type habit struct {
	units    []float64 // by bin
	ordinary []float64 // units, or NaN in the current surge and in incidents
	size     float64   // average units of a charge
	budget   float64   // units that the tightest limit allows
	last     time.Time // when bin 0 began

	surge     int     // length of the current surge in bins; 0 if there is none
	present   float64 // units of a bin of the current surge
	runaway   float64 // probability that the current surge goes on
	incidents int     // number of earlier surges of more than an hour
}

// newHabit counts the unscheduled spending of the bucket. Its bins are the grains of the ledger's
// sums. The last bin is the elapsed part of the current grain, plus the grain before if that part
// is short.
func newHabit(b Bucket) habit {
	free, length := unscheduled(b), assumedQuiet
	if len(b.Spent) > 0 {
		length = min(history(ahead(b)), max(assumedQuiet, b.At.Sub(b.Spent[0].At)))
	}
	h := habit{units: make([]float64, length/bin), budget: budgetOf(b), last: quota.GrainOf(b.At)}
	if b.At.Sub(h.last) < bin/2 {
		h.last = h.last.Add(-bin)
	}
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
	h.findSurges()
	return h
}

// binOf returns the bin that contains a moment.
func (h *habit) binOf(at time.Time) int {
	if !at.Before(h.last) {
		return 0
	}
	return 1 + int((h.last.Sub(at)-1)/bin)
}

// unscheduled returns, by entry, the units that no lane's job spent. It omits corrections, which
// were not spent at their time, and units drawn on open reservations, which count as held.
func unscheduled(b Bucket) []float64 {
	jobs := make(map[string]bool)
	for _, l := range b.Lanes {
		jobs[l.Job] = l.Job != ""
	}
	units := make([]float64, len(b.Spent))
	for i, e := range b.Spent {
		source := e.Labels[quota.LabelSource]
		corrects := source == "adjust" || source == "reconcile"
		if !corrects && !jobs[e.Labels[quota.LabelJob]] {
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
		undrawn := max(0, 1-float64(r.Drawn)/sum)
		for i := first; i < len(units); i++ {
			units[i] *= undrawn
		}
	}
	return units
}

// budgetOf returns the units that the tightest limit allows; for a week or a month, the units per
// day.
func budgetOf(b Bucket) float64 {
	least := float64(quota.MaxUnits)
	limits, _ := split(b)
	for _, l := range limits {
		units := float64(l.Cap(false))
		if l.Window.IsCalendar() && l.Reach() > minHistory {
			units /= l.Reach().Truncate(24*time.Hour).Hours() / 24
		}
		least = min(least, units)
	}
	return least
}

// ahead returns the length of the longest calendar window that the forecast may cover.
func ahead(b Bucket) time.Duration {
	calendar, _, _ := horizon(b)
	return calendar.Longest()
}
