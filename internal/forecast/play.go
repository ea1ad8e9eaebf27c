package forecast

import (
	"math"
	"math/rand/v2"
)

// outcome is one day that was played.
type outcome struct {
	dry     int64     // never when it does not
	rate    float64   // units an hour, unscheduled
	wants   []float64 // unscheduled units by bin from now
	charges charges   // in which they are asked for
	diary   *diary    // nil when it is not kept
}

const (
	// drift is how far the habit of a whole day may be from that of the past, as the deviation of a logarithm.
	drift = 0.1
	// varied is how far the size of one burst may be from that of another, likewise, and
	varied = 0.5
	// burstHalf is the half-life in hours of the size of bursts.
	burstHalf = 12
	// forgetting is the part of the days that views play which forget.
	forgetting = 0.5
)

// play walks the days that may come. The dice fall the same way every time, so that the same history has the same forecast, and
// a little more spent makes every one of them run dry no later.
func play(g *grid, h habit) []outcome {
	n := g.points[len(g.points)-2].bin + 1
	if h.idle() {
		d := new(diary)
		return []outcome{{dry: g.walk(outcome{}, d), diary: d}}
	}
	d := h.load()
	played := make([]outcome, days)
	for i := range played {
		o := outcome{wants: d.day(i, n), charges: h.begin(i, d.deck[dealtPhase][i])}
		for _, u := range o.wants {
			o.rate += u / (float64(n) * bin.Hours())
		}
		o.dry = g.walk(o, nil)
		played[i] = o
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
	deck      [decks][]float64
	present   []int     // the bins of the present spell
	calm      []int     // those outside of spells
	grain     float64   // of them
	burstTo   []float64 // running sums of what each burst counts
	forgets   []view
	changed   []view
	changedTo []float64 // running sums of how likely each is
	level     float64   // of today, to that of the same hours of the days before
	levelSure float64   // how much was seen of it, in charges
}

// load weighs the past. The present spell is no part of it.
func (h habit) load() *dice {
	d := &dice{habit: h, deck: deal()}
	inBurst := make([]bool, len(h.units))
	sum := 0.0
	for _, b := range h.bursts {
		for i := b.last; i < b.last+b.bins; i++ {
			inBurst[i] = true
		}
		sum += faded(b.last, burstHalf)
		d.burstTo = append(d.burstTo, sum)
	}
	for i, blind := range h.blind {
		switch {
		case i < h.spell-1 && !blind: // without its first, which it may have begun in the middle of
			d.present = append(d.present, i)
		case i >= h.spell && !blind && !inBurst[i]:
			d.calm = append(d.calm, i)
		}
	}
	if h.spell > 0 && len(d.present) == 0 {
		d.present = []int{0}
	}
	d.grain = h.grain(d.calm)
	d.compare()
	d.look()
	return d
}

// day is the unscheduled spending of the n bins to come in one of the days. It throws as often whatever the habit is.
func (d *dice) day(which, n int) []float64 {
	r := rand.New(rand.NewPCG(uint64(which), 0x666f7265))
	wants := make([]float64, n)
	v := d.view(d.deck[dealtView][which])
	wide := math.Exp(drift * r.NormFloat64())
	calm := wide * v.scale * gamma(v.sure, r.NormFloat64())
	often := v.bursts.drawn(r.NormFloat64())
	size := math.Exp(varied * r.NormFloat64() / math.Sqrt(1+v.bursts.count))
	clock := wide * d.level * gamma(d.levelSure, r.NormFloat64())
	byClock := d.deck[dealtClock][which] < d.clock
	spell := d.goesOn(d.deck[dealtRunaway][which], r.ExpFloat64(), n)
	d.strikes(wants, d.deck[dealtIncident][which], d.deck[dealtWhen][which], r)
	for i := range wants {
		part, begins, burst, other := r.Float64(), r.Float64(), r.Float64(), r.NormFloat64()
		same := d.sameHour(i, part)
		switch {
		case i < spell:
			wants[i] += calm * d.inSpell(part)
			continue
		case byClock && same >= 0:
			wants[i] += clock * d.units[same]
			continue
		case len(d.calm) > 0:
			wants[i] += calm * d.units[d.calm[pick(v.calmTo, part)]]
		}
		if begins < often && len(d.bursts) > 0 {
			b := d.bursts[pick(d.burstTo, burst)]
			f := size * math.Exp(varied*other-varied*varied/2)
			for j := 0; j < b.bins && i+j < n; j++ {
				wants[i+j] += f * d.units[b.last+b.bins-1-j]
			}
		}
	}
	return wants
}

// view is the view by which a day is played.
func (d *dice) view(part float64) view {
	if part < forgetting {
		return d.forgets[int(part/forgetting*float64(len(d.forgets)))]
	}
	return d.changed[pick(d.changedTo, (part-forgetting)/(1-forgetting))]
}

// goesOn is for how many of n bins the present spell goes on.
func (d *dice) goesOn(runaway, lasts float64, n int) int {
	switch {
	case d.spell == 0:
		return 0
	case runaway < d.runaway:
		return n
	}
	return int(math.Round(lasts * d.length))
}

// inSpell is the units of a bin of the present spell.
func (d *dice) inSpell(part float64) float64 {
	return d.units[d.present[int(part*float64(len(d.present)))]]
}
