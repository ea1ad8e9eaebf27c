package forecast

import (
	"math"
	"slices"
	"time"
)

// A surge is a run of bins with far more unscheduled spending than is usual. While it lasts it may
// be a burst, which ends by itself as bursts do, or a job that has run away, which does not. The
// longer it has lasted, the less it looks like a burst.
type surges struct {
	surge     int     // how many bins the present one has lasted; 0 when there is none
	high      []bool  // the bins of those before it
	bursts    []burst // among them
	incidents int     // those that were no bursts
	length    float64 // bins that a burst lasts on the average
	runaway   float64 // how likely the present surge is to go on until the reset
}

// burst is bins of a surge: its last one, and how many there are.
type burst struct{ last, bins int }

const (
	// factor is how many times the median a bin of a surge has at least, and
	factor = 3
	// tall is what part of the budget it has besides: less is no danger.
	tall = 1.0 / 500
	// least is how many bins make a surge that may go on: one may be a single charge.
	least = 2
	// gap is how many lower bins in a row a surge may have.
	gap = 1
	// usual is how many bins a burst is taken to last before any was seen.
	usual = 2
	// oneIn is how many surges there are for one runaway, before any was seen.
	oneIn = 4
	// remembered is how many bins a surge that ended may have lasted to count as a burst, which
	// will come again soon. What lasted longer, such as a job that somebody stopped, or a backfill,
	// was an incident.
	remembered = int(time.Hour / bin)
)

// findSurges finds the present surge and those before it.
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
		case i <= gap && h.surge == 0 && past == 0 && n >= least:
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

// surgeAt is how many bins the surge has whose last bin is i.
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

// ordinary is the bins without those of surges, which are not known.
func (h *habit) ordinary() []float64 {
	units := slices.Clone(h.units)
	for i := range units {
		if i < h.surge || h.high[i] {
			units[i] = math.NaN()
		}
	}
	return units
}

// median is that of the bins.
func (h *habit) median() float64 {
	sorted := slices.Sorted(slices.Values(h.units))
	return sorted[len(sorted)/2]
}
