package plan

import (
	"math"
	"slices"
)

// A surge is a run of bins with far more unscheduled spending than usual. The current one may be a
// burst, which ends by itself, or a runaway job, which does not. The longer it lasts, compared with
// earlier ones, the less it looks like a burst. An earlier one of more than an hour, such as a
// stopped job or a backfill, was an incident.

const (
	// minSurgeRatio is the minimum ratio of a surge's bin to a usual bin.
	minSurgeRatio = 3
	// minBudgetPart is the minimum part of the budget in a bin of a surge. A smaller one is
	// harmless.
	minBudgetPart = 1.0 / 500
	// minSurgeBins and minSurgeCharges are the minimum size of a surge that may continue.
	minSurgeBins, minSurgeCharges = 2, 6
	// priorBurst is the prior length of a burst, in bins.
	priorBurst = 2
	// surgesPerRunaway is the prior number of surges per runaway.
	surgesPerRunaway = 4
	// noticedAfter is the number of bins after which a person stops a runaway job, in a forecast of
	// many days.
	noticedAfter = dayBins
	// incidentHours is the typical time in which an incident uses up the bucket.
	incidentHours = 6
)

// findSurges finds the current surge and earlier ones. It removes the current surge and incidents
// from the ordinary spending.
func (h *habit) findSurges() {
	h.ordinary = slices.Clone(h.units)
	sorted := slices.Sorted(slices.Values(h.units))
	line := max(minSurgeRatio*sorted[len(sorted)/2], minBudgetPart*h.budget, 1)
	past, length := 0.0, 0.0 // of earlier surges
	for i := 0; i < len(h.units); {
		n := h.surgeAt(i, line)
		total := 0.0
		for _, u := range h.units[i : i+n] {
			total += u
		}
		current := i <= 1 && past == 0 && n >= minSurgeBins && total >= minSurgeCharges*h.size
		switch {
		case current:
			h.surge = i + n
			h.present = mean(h.units[:i+n-1]) // the surge may have begun in the middle of a bin
		case n > 0:
			past, length = past+1, length+float64(min(n, hourBins))
		}
		if !current && n > hourBins {
			h.incidents++
		}
		if current || n > hourBins {
			for j := i; j < i+n; j++ {
				h.ordinary[j] = math.NaN()
			}
		}
		i += max(n, 1)
	}
	if h.surge > 0 {
		length = (length + 2*priorBurst) / (past + 2)
		odds := 1 / (surgesPerRunaway - 1 + past) * math.Exp(float64(h.surge)/length)
		h.runaway = odds / (1 + odds)
	}
}

// surgeAt returns the number of bins of the surge whose last bin is i. It may have a gap of one.
func (h *habit) surgeAt(i int, line float64) (length int) {
	for n := 0; i+n < len(h.units) && n-length < 2 && (n == 0 || length > 0); n++ {
		usual := line
		for _, other := range []int{i + n + dayBins, i + n - dayBins} {
			if same := h.around(other); known(same) {
				usual = max(usual, minSurgeRatio*same)
			}
		}
		if h.units[i+n] >= usual {
			length = n + 1
		}
	}
	return length
}
