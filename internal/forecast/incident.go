package forecast

import (
	"math"
	"math/rand/v2"
)

// incident is a surge that was no burst: a job that ran away, or a backfill.
type incident struct {
	bins int
	rate float64 // units in a bin
	cut  bool    // it went on until nothing was left
}

const (
	// incidentsSeen and incidentHours are what is believed of incidents before any log was seen:
	// one in six days, and that is worth no more than three days of log.
	incidentsSeen, incidentHours = 0.5, 72
	// empties is in how many hours an incident empties the whole bucket of which nothing like it
	// was seen.
	empties = 6
	// unlike is how far the rate of one incident may be from that of another, as the deviation of a
	// logarithm.
	unlike = 0.5
)

// incident is what a surge that is over was.
func (h *habit) incident(b burst) incident {
	in := incident{bins: b.bins, cut: h.blind[b.last] || b.last > 0 && h.blind[b.last-1]}
	n := 0.0
	for i := b.last; i < b.last+b.bins; i++ {
		if !h.blind[i] {
			in.rate, n = in.rate+h.units[i], n+1
		}
	}
	in.rate /= max(1, n)
	return in
}

// strikes lets an incident come, in as many days as the log has incidents, and as late as the dice
// say.
func (d *dice) strikes(wants []float64, comes, when float64, r *rand.Rand) {
	which, size := r.Float64(), r.NormFloat64()
	seen := incidentsSeen + float64(len(d.incidents))
	looked := incidentHours + float64(len(d.units))*bin.Hours()
	none := math.Pow(1+float64(len(wants))*bin.Hours()/looked, -seen)
	if comes < none {
		return
	}
	in := incident{rate: d.budget * bin.Hours() / empties, cut: true}
	if i := which*seen - incidentsSeen; i >= 0 {
		in = d.incidents[int(i)]
	}
	first, last := int(when*float64(len(wants))), len(wants)
	if !in.cut {
		last = min(last, first+in.bins)
	}
	for i := first; i < last; i++ {
		wants[i] += math.Exp(unlike*size) * in.rate
	}
}
