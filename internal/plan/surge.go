package plan

import (
	"math"
	"slices"
	"time"
)

// surges finds runs of bins with far more unscheduled spending than usual. The current one may be
// a burst, which ends by itself, or a runaway job, which does not. The longer it lasts, the less
// it looks like a burst.
type surges struct {
	surge     int     // bins the current surge has lasted; 0 if there is none
	high      []bool  // bins of earlier surges
	bursts    []burst // those that were bursts
	incidents int     // number of those that were not
	length    float64 // average bins of a burst
	runaway   float64 // probability that the current surge lasts until the reset
}

// burst is its last bin, and the number of its bins.
type burst struct{ last, bins int }

const (
	// factor is the least ratio of a surge's bin to the median.
	factor = 3
	// tall is the least part of the budget in a surge's bin, because less is no danger.
	tall = 1.0 / 500
	// least is the number of bins of a surge that may go on. A shorter one may be a single
	// charge.
	least = 2
	// several is the least number of charges of a surge that may go on.
	several = 6
	// gap is the number of lower bins in a row that a surge may have.
	gap = 1
	// usual is the prior length of a burst, in bins.
	usual = 2
	// oneIn is the prior number of surges per runaway.
	oneIn = 4
	// remembered is the most bins of a past surge that counts as a burst, which will recur. A
	// longer one, such as a stopped job or a backfill, was an incident.
	remembered = int(time.Hour / bin)
)

// findSurges finds the current surge and earlier ones.
func (h *habit) findSurges() {
	h.high = make([]bool, len(h.units))
	line := max(factor*h.median(), tall*h.budget, 1)
	past, total := 0.0, 0.0
	for i := 0; i < len(h.units); {
		n := h.surgeAt(i, line)
		switch {
		case n == 0:
			i++
			continue
		case i <= gap && h.surge == 0 && past == 0 && n >= least && h.sum(i, n) >= several*h.size:
			h.surge = i + n
		default:
			past, total = past+1, total+float64(min(n, remembered))
			for j := i; j < i+n; j++ {
				h.high[j] = true
			}
			if n <= remembered {
				h.bursts = append(h.bursts, burst{i, n})
			} else {
				h.incidents++
			}
		}
		i += n
	}
	h.length = (total + 2*usual) / (past + 2)
	odds := 1 / (oneIn - 1 + past) * math.Exp(float64(h.surge)/h.length)
	h.runaway = odds / (1 + odds)
}

// surgeAt returns the number of bins of the surge whose last bin is i.
func (h *habit) surgeAt(i int, line float64) int {
	isHigh := func(i int) bool { return h.units[i] >= max(line, factor*h.usualAt(i)) }
	if !isHigh(i) {
		return 0
	}
	length := 1
	for n := 1; i+n < len(h.units) && n-length <= gap; n++ {
		if isHigh(i + n) {
			length = n + 1
		}
	}
	return length
}

// sum returns the units of n bins from bin i on.
func (h *habit) sum(i, n int) (sum float64) {
	for _, units := range h.units[i : i+n] {
		sum += units
	}
	return sum
}

// ordinary returns the bins, with those of surges unknown.
func (h *habit) ordinary() []float64 {
	units := slices.Clone(h.units)
	for i := range units {
		if i < h.surge || h.high[i] {
			units[i] = math.NaN()
		}
	}
	return units
}

// median returns the median of the bins.
func (h *habit) median() float64 {
	sorted := slices.Sorted(slices.Values(h.units))
	return sorted[len(sorted)/2]
}
