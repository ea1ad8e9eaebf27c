package forecast

import (
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// outcome is one day that was played.
type outcome struct {
	dry   int64     // never when it does not
	rate  float64   // units an hour, unscheduled
	wants []float64 // unscheduled units by bin from now
}

// drift is how far the habit of a whole day may be from that of the past, as the deviation of a logarithm.
const drift = 0.15

// play walks the days that may come. The dice fall the same way every time, so that the same history has the same forecast, and
// a little more spent makes every one of them run dry no later.
func play(g *grid, h habit) []outcome {
	n := g.points[len(g.points)-2].bin + 1
	if h.idle() {
		return []outcome{{dry: g.walk(nil, nil)}}
	}
	dice := h.load()
	played := make([]outcome, days)
	for i := range played {
		wants := dice.day(rand.New(rand.NewPCG(uint64(i), 0x666f7265)), n)
		var sum float64
		for _, u := range wants {
			sum += u
		}
		played[i] = outcome{dry: g.walk(wants, nil), rate: sum / (float64(n) * bin.Hours()), wants: wants}
	}
	return played
}

// idle reports that nothing unscheduled was spent.
func (h *habit) idle() bool {
	for _, u := range h.units {
		if u > 0 {
			return false
		}
	}
	return true
}

// dice are a habit made ready to be thrown.
type dice struct {
	habit
	calm    []int     // the bins outside of spells
	calmTo  []float64 // running sums of their weights
	burstTo []float64 // of the bursts'
	begins  float64   // how likely a burst begins in a bin
}

// load weighs the past by its age. The present spell is no part of it.
func (h habit) load() dice {
	d := dice{habit: h}
	inBurst := make(map[int]bool)
	var calm, bursts, looked float64
	for _, b := range h.bursts {
		bursts += faded(b.last, burstHalf)
		d.burstTo = append(d.burstTo, bursts)
		for i := b.last; i < b.last+b.bins; i++ {
			inBurst[i] = true
		}
	}
	for i := h.spell; i < len(h.units); i++ {
		if h.blind[i] {
			continue
		}
		looked += faded(i, burstHalf)
		if !inBurst[i] {
			calm += faded(i, calmHalf)
			d.calm, d.calmTo = append(d.calm, i), append(d.calmTo, calm)
		}
	}
	if bursts > 0 && looked > 0 {
		d.begins = bursts / looked
	}
	return d
}

// faded is what a bin still counts.
func faded(i int, half time.Duration) float64 {
	return math.Exp2(-float64(i) * bin.Hours() / half.Hours())
}

// day is the unscheduled spending of the n bins to come. It throws as often whatever the habit is.
func (d dice) day(r *rand.Rand, n int) []float64 {
	wants := make([]float64, n)
	factor := math.Exp(drift * r.NormFloat64())
	spell := d.goesOn(r.Float64(), r.ExpFloat64(), n)
	for i := range wants {
		which, begins, burst := r.Float64(), r.Float64(), r.Float64()
		switch {
		case i < spell:
			wants[i] = factor * d.units[d.inSpell(which)]
			continue
		case len(d.calm) > 0:
			wants[i] += factor * d.units[d.calm[pick(d.calmTo, which)]]
		}
		if begins < d.begins {
			b := d.bursts[pick(d.burstTo, burst)]
			for j := 0; j < b.bins && i+j < n; j++ {
				wants[i+j] += d.units[b.last+b.bins-1-j]
			}
		}
	}
	return wants
}

// goesOn is for how many of n bins the present spell goes on.
func (d dice) goesOn(runaway, lasts float64, n int) int {
	switch {
	case d.spell == 0:
		return 0
	case runaway < d.runaway:
		return n
	}
	return int(math.Round(lasts * d.length))
}

// pick is the place in running sums at which a part of the whole, 0 to 1, lies.
func pick(sums []float64, part float64) int { return sort.SearchFloat64s(sums, part*sums[len(sums)-1]) }

// inSpell picks a bin of the present spell, not its first, which it may have begun in the middle of.
func (d dice) inSpell(part float64) int {
	return int(part * float64(max(1, d.spell-1)))
}
