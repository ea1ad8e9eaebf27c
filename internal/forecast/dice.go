package forecast

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostDays is how many days are played, and
	mostDays = 200
	// fewestDays at least, where the schedule has so many ticks that more than
	mostTicks = 1_000_000
	// would be played in all.
	fewestDays = 20
)

const (
	// hour is how many bins an hour has.
	hour = int(time.Hour / bin)
	// seldom is in how many hours one burst is taken to have begun before any was seen.
	seldom = 24
	// incidentsSeen and incidentHours are what is assumed of incidents before any log was seen: one
	// in six days, and that is worth no more than 30 hours of log.
	incidentsSeen, incidentHours = 0.2, 30
	// empties is in how many hours an incident empties the whole bucket, and
	empties = 6
	// unlike how far one may be from that, as the deviation of a logarithm.
	unlike = 0.5
)

// halves are the half-lives by which the days forget ordinary spending: in hours, and in days where
// many are to come. Nobody knows for how long what was so will be so: each is for a quarter of the
// days.
func halves() [4]float64 { return [4]float64{2, 4, 8, 16} }

// count is how many days are played.
func (o *outlook) count() int {
	return min(mostDays, max(fewestDays, int(mostTicks/max(1, o.wanted.Runs))))
}

// days plays the days that may come. The dice fall the same way every time, so that the same
// history has the same forecast, and a little more spent makes every one of them run dry no later.
func (o *outlook) days() []day {
	h := newHabit(o.Bucket)
	if slices.Max(h.units) == 0 { // nothing unscheduled was spent
		d := day{dry: never}
		d.dry = o.play(d, nil)
		return []day{d}
	}
	n := int((o.end.Sub(o.At) + bin - 1) / bin)
	d := h.load(o.count(), n)
	played := make([]day, len(d.deck[0]))
	var next atomic.Int64
	var all sync.WaitGroup
	for worker := range min(len(played), runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			mine := o
			if worker > 0 { // a course has one play at a time
				mine = newOutlook(o.Bucket, o)
			}
			for i := int(next.Add(1)) - 1; i < len(played); i = int(next.Add(1)) - 1 {
				p := day{wants: d.day(i, n), size: h.size, seed: uint64(i)}
				p.rate = mean(p.wants) / bin.Hours()
				p.dry = mine.play(p, nil)
				played[i] = p
			}
		})
	}
	all.Wait()
	return played
}

// What decides most about a day is not thrown for each day but dealt: of a hundred days, one in ten
// gets a chance of one in ten.
const (
	dealtHalf = iota
	dealtRunaway
	dealtIncident
	dealtWhen
	dealtClock
	decks
)

// deal shuffles the places among the days that are played, the same way every time.
func deal(days int) (deck [decks][]float64) {
	for i := range deck {
		deck[i] = make([]float64, days)
		for j, place := range thrower(uint64(i)).Perm(days) {
			deck[i][j] = (float64(place) + 0.5) / float64(days)
		}
	}
	return deck
}

// thrower throws the same way every time for the same seed.
func thrower(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x666f7265)) }

// dice are a habit made ready to be thrown.
type dice struct {
	habit
	deck     [decks][]float64
	present  []float64    // units of the bins of the present surge
	calm     []float64    // of those outside of surges
	calmTo   [4][]float64 // running sums of what each of these counts, for each of halves
	often    float64      // how likely a burst begins in a bin
	incident float64      // how likely one comes
	today    float64      // its level, to that of the same hours of the days before
	flat     float64      // how far off predictions are, as the deviation of a logarithm
	clocked  float64      // and those by the clock
	spans    float64      // of log, as long as the one to come, by which that was measured
	far      bool         // the days to come are more than two
}

// load weighs the past, for days of n bins. The present surge is no part of it.
//
// Of many days to come see distant. A surge or an incident is over after one of them: somebody has
// seen it.
func (h habit) load(days, n int) *dice {
	d := &dice{habit: h, deck: deal(days), far: n > 2*dayBins}
	for i, units := range h.units {
		switch {
		case i < h.surge-1: // without its first, which it may have begun in the middle of
			d.present = append(d.present, units)
		case i >= h.surge && !h.high[i]:
			d.calm = append(d.calm, units)
			for k, half := range halves() {
				sum := math.Exp2(-float64(i) / (half * float64(hour)))
				if at := len(d.calmTo[k]); at > 0 {
					sum += d.calmTo[k][at-1]
				}
				d.calmTo[k] = append(d.calmTo[k], sum)
			}
		}
	}
	d.often = (0.5 + float64(len(h.bursts))) / float64(len(h.units)-h.surge+seldom*hour/2)
	ahead, looked := float64(n)*bin.Hours(), float64(len(h.units))*bin.Hours()
	incidents := incidentsSeen + float64(h.incidents)
	if d.far {
		incidents = incidentsSeen // the others are among the days that are drawn
	}
	d.incident = 1 - math.Pow(1+ahead/(incidentHours+looked), -incidents)
	if d.far {
		d.distance(n)
		return d
	}
	d.today = ratio(hourly(h.units), 0)
	span := max(1, min(lead, n/hour))
	d.flat, d.clocked = off(hourly(h.ordinary()), span, grain(d.calm, h.size))
	d.spans = max(1, float64(min(len(h.units)/hour, dayHours+lead))/float64(span))
	return d
}

// day is the unscheduled spending of the n bins to come in one of the days. It throws as often
// whatever the habit is.
func (d *dice) day(which, n int) []float64 {
	r := thrower(uint64(which))
	dealt := func(deck int) float64 { return d.deck[deck][which] }
	normal := student(r.NormFloat64(), d.spans)
	calm, clock := math.Exp(d.flat*normal), d.today*math.Exp(d.clocked*normal)
	calmTo := d.calmTo[int(dealt(dealtHalf)*float64(len(d.calmTo)))]
	byClock, surge := dealt(dealtClock) < d.clock, d.goesOn(dealt(dealtRunaway), r.ExpFloat64(), n)
	wants := make([]float64, n)
	d.strike(wants, dealt(dealtIncident), dealt(dealtWhen), r.NormFloat64())
	if d.far {
		all := halves()
		d.distant(wants, all[int(dealt(dealtHalf)*float64(len(all)))], surge, calm, r)
		return wants
	}
	for i := range wants {
		part, begins, which := r.Float64(), r.Float64(), r.Float64()
		same := d.sameHour(i, part)
		switch {
		case i < surge:
			wants[i] += calm * d.present[int(part*float64(len(d.present)))]
			continue
		case byClock && same >= 0:
			wants[i] += clock * d.units[same]
			continue
		case len(d.calm) > 0:
			wants[i] += calm * d.calm[pick(calmTo, part)]
		}
		if begins < d.often && len(d.bursts) > 0 {
			b := d.bursts[int(which*float64(len(d.bursts)))]
			for j := 0; j < b.bins && i+j < n; j++ {
				wants[i+j] += d.units[b.last+b.bins-1-j]
			}
		}
	}
	return wants
}

// student makes of a normal deviate one of Student's distribution: a deviation that was measured by
// a few values may be more than that (Cornish and Fisher).
func student(z, values float64) float64 { return z + z*(z*z+1)/(4*values) }

// pick is the place in running sums at which a part of the whole, 0 to 1, lies.
func pick(sums []float64, part float64) int {
	return sort.SearchFloat64s(sums, part*sums[len(sums)-1])
}

// goesOn is for how many of n bins the present surge goes on.
func (d *dice) goesOn(runaway, lasts float64, n int) int {
	switch {
	case d.surge == 0:
		return 0
	case runaway < d.runaway && !d.far:
		return n
	case runaway < d.runaway:
		return dayBins
	}
	return int(math.Round(lasts * d.length))
}

// strike lets an incident come, as often as the log has them: a job that runs away, which goes on
// until nothing is left.
func (d *dice) strike(wants []float64, comes, when, size float64) {
	if comes >= d.incident {
		return
	}
	from, to := int(when*float64(len(wants))), len(wants)
	if d.far {
		to = min(to, from+dayBins)
	}
	for i := from; i < to; i++ {
		wants[i] += math.Exp(unlike*size) * d.budget * bin.Hours() / empties
	}
}
