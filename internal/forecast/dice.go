package forecast

import (
	"math"
	"math/rand/v2"
)

const (
	// drift is how far the habit of a whole day may be from that of the past, as the deviation of a
	// logarithm.
	drift = 0.1
	// varied is how far the size of one burst may be from that of another, likewise, and
	varied = 0.5
	// burstHalf is the half-life in hours of the size of bursts.
	burstHalf = 12
	// forgetting is the part of the days that views play which forget.
	forgetting = 0.5
)

const (
	// mostDays is how many days are played, and
	mostDays = 200
	// fewestDays at least, where the schedule has so many ticks that more than
	mostTicks = 1_000_000
	// would be played in all.
	fewestDays = 20
)

// count is how many days are played.
func (o *outlook) count() int {
	return min(mostDays, max(fewestDays, mostTicks/max(1, o.course.Ticks())))
}

// days plays the days that may come. The dice fall the same way every time, so that the same
// history has the same forecast, and a little more spent makes every one of them run dry no later.
func (o *outlook) days() []day {
	h := newHabit(o.Bucket)
	if h.idle() {
		d := day{dry: never}
		d.dry = o.play(d, nil)
		return []day{d}
	}
	n := int((o.end.Sub(o.At) + bin - 1) / bin)
	d := h.load(o.count())
	played := make([]day, d.days)
	for i := range played {
		p := day{wants: d.day(i, n), charges: charges{h.sizes, i % len(h.sizes), d.deck[dealtPhase][i]}}
		for _, u := range p.wants {
			p.rate += u / (float64(n) * bin.Hours())
		}
		p.dry = o.play(p, nil)
		played[i] = p
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
	days      int
	deck      [decks][]float64
	present   []int     // the bins of the present surge
	calm      []int     // those outside of surges
	grain     float64   // of them
	burstTo   []float64 // running sums of what each burst counts
	forgets   []view
	changed   []view
	changedTo []float64 // running sums of how likely each is
	level     float64   // of today, to that of the same hours of the days before
	levelSure float64   // how much was seen of it, in charges
}

// load weighs the past. The present surge is no part of it.
func (h habit) load(days int) *dice {
	d := &dice{habit: h, days: days, deck: deal(days)}
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
		case i < h.surge-1 && !blind: // without its first, which it may have begun in the middle of
			d.present = append(d.present, i)
		case i >= h.surge && !blind && !inBurst[i]:
			d.calm = append(d.calm, i)
		}
	}
	if h.surge > 0 && len(d.present) == 0 {
		d.present = []int{0}
	}
	d.grain = h.grain(d.calm)
	d.compare()
	d.look()
	return d
}

// day is the unscheduled spending of the n bins to come in one of the days. It throws as often
// whatever the habit is.
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
	surge := d.goesOn(d.deck[dealtRunaway][which], r.ExpFloat64(), n)
	d.strikes(wants, d.deck[dealtIncident][which], d.deck[dealtWhen][which], r)
	for i := range wants {
		part, begins, burst, other := r.Float64(), r.Float64(), r.Float64(), r.NormFloat64()
		same := d.sameHour(i, part)
		switch {
		case i < surge:
			wants[i] += calm * d.inSurge(part)
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

// goesOn is for how many of n bins the present surge goes on.
func (d *dice) goesOn(runaway, lasts float64, n int) int {
	switch {
	case d.surge == 0:
		return 0
	case runaway < d.runaway:
		return n
	}
	return int(math.Round(lasts * d.length))
}

// inSurge is the units of a bin of the present surge.
func (d *dice) inSurge(part float64) float64 {
	return d.units[d.present[int(part*float64(len(d.present)))]]
}

// view is the view by which a day is played.
func (d *dice) view(part float64) view {
	if part < forgetting {
		return d.forgets[int(part/forgetting*float64(len(d.forgets)))]
	}
	return d.changed[pick(d.changedTo, (part-forgetting)/(1-forgetting))]
}
