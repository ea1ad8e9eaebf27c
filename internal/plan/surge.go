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
	// factor is the minimum ratio of a surge's bin to a usual bin.
	factor = 3
	// tall is the minimum fraction of the budget in a surge's bin. Less is harmless.
	tall = 1.0 / 500
	// least and several are the minimum numbers of bins and charges of a surge that may go on.
	least, several = 2, 6
	// usual is the prior length of a burst, in bins.
	usual = 2
	// oneIn is the prior number of surges per runaway.
	oneIn = 4
	// noticed is the number of bins after which a person stops a runaway job, if many days are
	// ahead.
	noticed = dayBins
	// empties is the typical time in which an incident uses up the bucket, in hours.
	empties = 6
)

// findSurges finds the current surge and earlier ones. It removes the current surge and incidents
// from the ordinary spending.
func (h *habit) findSurges() {
	h.ordinary = slices.Clone(h.units)
	sorted := slices.Sorted(slices.Values(h.units))
	line := max(factor*sorted[len(sorted)/2], tall*h.budget, 1)
	past, length := 0.0, 0.0 // of earlier surges
	for i := 0; i < len(h.units); {
		n := h.surgeAt(i, line)
		total := 0.0
		for _, u := range h.units[i : i+n] {
			total += u
		}
		current := i <= 1 && past == 0 && n >= least && total >= several*h.size
		switch {
		case current:
			h.surge = i + n
			h.present = mean(h.units[:i+n-1]) // the surge may have begun in the middle of a bin
		case n > 0:
			past, length = past+1, length+float64(min(n, hour))
		}
		if !current && n > hour {
			h.incidents++
		}
		if current || n > hour {
			for j := i; j < i+n; j++ {
				h.ordinary[j] = math.NaN()
			}
		}
		i += max(n, 1)
	}
	if h.surge > 0 {
		length = (length + 2*usual) / (past + 2)
		odds := 1 / (oneIn - 1 + past) * math.Exp(float64(h.surge)/length)
		h.runaway = odds / (1 + odds)
	}
}

// surgeAt returns the number of bins of the surge whose last bin is i. It may have a gap of one.
func (h *habit) surgeAt(i int, line float64) (length int) {
	for n := 0; i+n < len(h.units) && n-length < 2 && (n == 0 || length > 0); n++ {
		usual := line
		for _, other := range []int{i + n + dayBins, i + n - dayBins} {
			if same := h.around(other); known(same) {
				usual = max(usual, factor*same)
			}
		}
		if h.units[i+n] >= usual {
			length = n + 1
		}
	}
	return length
}
