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
	// mostDays is the number of days to simulate.
	mostDays = 200
	// mostTicks bounds the ticks of all simulated days together. With many ticks a day, fewer days
	// are simulated.
	mostTicks = 1_000_000
	// fewestDays is the minimum number of days to simulate.
	fewestDays = 20
)

const (
	// hour is the number of bins in an hour.
	hour = int(time.Hour / bin)
	// seldom is the prior interval between bursts, in hours.
	seldom = 24
	// incidentsSeen and incidentHours are the prior of incidents: one in six days, with the
	// weight of 30 hours of log.
	incidentsSeen, incidentHours = 0.2, 30
	// empties is the typical time in which an incident uses up the bucket, in hours.
	empties = 6
	// incidentSpread is the standard deviation of the logarithm of an incident's size.
	incidentSpread = 0.5
)

// halves returns the half-lives, in hours, of the weight of past ordinary spending; in days if
// many days are ahead. Each applies to a quarter of the simulated days, because the persistence
// of past spending is unknown.
func halves() [4]float64 { return [4]float64{2, 4, 8, 16} }

// count returns the number of days to simulate.
func (o *outlook) count() int {
	return min(mostDays, max(fewestDays, int(mostTicks/max(1, o.wanted.Runs))))
}

// days simulates the possible days. The random numbers are the same every time, so that the same
// history gives the same forecast, and more past spending never makes a day run dry later.
func (o *outlook) days() []day {
	h := newHabit(o.Bucket)
	if slices.Max(h.units) == 0 { // no unscheduled spending
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
			if worker > 0 { // the main course is used by worker 0
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

// The most influential choices are dealt, not drawn: of a hundred days, one in ten gets a chance
// of one in ten.
const (
	dealtHalf = iota
	dealtRunaway
	dealtIncident
	dealtWhen
	dealtClock
	decks
)

// deal shuffles the ranks of the simulated days, the same way every time.
func deal(days int) (deck [decks][]float64) {
	for i := range deck {
		deck[i] = make([]float64, days)
		for j, place := range thrower(uint64(i)).Perm(days) {
			deck[i][j] = (float64(place) + 0.5) / float64(days)
		}
	}
	return deck
}

// thrower returns the random numbers of a seed.
func thrower(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x666f7265)) }

// dice is a habit prepared for simulation.
type dice struct {
	habit
	deck     [decks][]float64
	present  []float64    // units of the current surge's bins
	calm     []float64    // units of the bins outside of surges
	calmTo   [4][]float64 // running sums of the weights of calm, for each of halves
	often    float64      // probability that a burst begins in a bin
	incident float64      // probability of an incident
	today    float64      // today's level, relative to the same hours of the days before
	flat     float64      // prediction error, as the standard deviation of a logarithm
	clocked  float64      // the same for predictions by the clock
	spans    float64      // number of spans in the log that the errors were measured on
	far      bool         // more than two days are ahead
}

// load weighs the past for days of n bins, without the current surge.
//
// For many days ahead see distant. A surge or an incident then ends after a day, when somebody
// has noticed it.
func (h habit) load(days, n int) *dice {
	d := &dice{habit: h, deck: deal(days), far: n > 2*dayBins}
	for i, units := range h.units {
		switch {
		case i < h.surge-1: // the surge may have begun in the middle of its first bin
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
		incidents = incidentsSeen // past incidents are in the days drawn from the log
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

// day returns the unscheduled spending of the next n bins in one simulated day. It draws the same
// number of random values for every habit.
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

// student turns a normal deviate into one of Student's distribution, because a deviation measured
// from few values is uncertain (Cornish and Fisher).
func student(z, values float64) float64 { return z + z*(z*z+1)/(4*values) }

// pick returns the index in running sums of a fraction of the total.
func pick(sums []float64, part float64) int {
	return sort.SearchFloat64s(sums, part*sums[len(sums)-1])
}

// goesOn returns for how many of n bins the current surge continues.
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

// strike adds an incident with the log's frequency: a job that runs away until no units are left.
func (d *dice) strike(wants []float64, comes, when, size float64) {
	if comes >= d.incident {
		return
	}
	from, to := int(when*float64(len(wants))), len(wants)
	if d.far {
		to = min(to, from+dayBins)
	}
	for i := from; i < to; i++ {
		wants[i] += math.Exp(incidentSpread*size) * d.budget * bin.Hours() / empties
	}
}
