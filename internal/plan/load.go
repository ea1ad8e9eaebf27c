package plan

import (
	"math"
	"slices"
	"time"
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
	// shift is the standard deviation, as a logarithm, of a coming month's level beyond the
	// variation in the log: people start and stop things. It was chosen so that the interval
	// holds in eight of ten months (see TestMonths).
	shift = 0.35
)

// halves returns the half-lives of the weight of past spending, in hours; in days if many days
// are ahead. The level is the mean over them, because the persistence of spending is unknown.
func halves() []float64 { return []float64{2, 4, 8, 16} }

// load is unscheduled spending by bin from now.
type load []float64

// perHour returns the mean rate.
func (l load) perHour() float64 { return mean(l) / bin.Hours() }

// tail is the part of the days that spend less than the low load, and more than the high one.
const tail = 0.1

// loads returns the 10th percentile, the median and the 90th percentile of unscheduled spending in
// the next n bins. room is the units left.
func (h *habit) loads(n int, room float64) (low, likely, high load) {
	e := h.expect(n)
	sum := 0.0
	for _, units := range e.units {
		sum += units
	}
	if sum == 0 && e.surge == 0 {
		return make(load, n), make(load, n), make(load, n)
	}
	counted := max(1, min(sum, room)) // units until the bucket is dry, or until the end
	spread := math.Sqrt(e.level*e.level + math.Log(1+e.noise*sum/counted/counted))
	at := func(part float64) load {
		z := normal(part)
		return e.at(part, math.Exp(spread*student(z, e.spans)))
	}
	return at(tail), at(0.5), at(1 - tail)
}

// normal returns the quantile of the standard normal distribution.
func normal(part float64) float64 { return math.Sqrt2 * math.Erfinv(2*part-1) }

// student turns a normal deviate into one of Student's distribution, because a deviation measured
// from few values is uncertain (Cornish and Fisher).
func student(z, values float64) float64 { return z + z*(z*z+1)/(4*values) }

// expected is the expected spending of the bins ahead.
type expected struct {
	*habit
	units   []float64 // without the current surge
	present float64   // of a bin of the current surge
	level   float64   // uncertainty of the level, as the standard deviation of a logarithm
	spans   float64   // number of values that it was measured on
	noise   float64   // variance per unit: the size of charges and bursts
	far     bool      // more than two days are ahead
	strikes float64   // probability of an incident
}

// expect predicts the next n bins.
func (h *habit) expect(n int) expected {
	e := expected{habit: h, units: make([]float64, n), far: n > 2*dayBins}
	if h.surge > 1 { // the surge may have begun in the middle of its first bin
		e.present = mean(h.units[:h.surge-1])
	}
	incidents := incidentsSeen + float64(h.incidents)
	if e.far {
		incidents = incidentsSeen // the days of the log contain earlier incidents
	}
	ahead, past := float64(n)*bin.Hours(), float64(len(h.units))*bin.Hours()
	e.strikes = 1 - math.Pow(1+ahead/(incidentHours+past), -incidents)
	if e.far {
		e.days(n)
		return e
	}
	ordinary := h.ordinary()
	calm := slices.DeleteFunc(slices.Clone(ordinary), math.IsNaN)
	size := grain(calm, h.size)
	span := max(1, min(lead, n/hour))
	flat, clocked := off(hourly(ordinary), span, size)
	e.spans = max(1, float64(min(len(h.units)/hour, dayHours+lead))/float64(span))
	level, differ := levelOf(ordinary[h.surge:], float64(hour))
	e.level = math.Hypot(flat, differ)
	if h.clock {
		e.level = clocked
	}
	today, burst, units := ratio(hourly(h.units), 0), 0.0, 0.0
	often := (0.5 + float64(len(h.bursts))) / float64(len(h.units)-h.surge+seldom*hour/2)
	for _, b := range h.bursts {
		for _, u := range h.units[b.last : b.last+b.bins] {
			units += u / float64(len(h.bursts))
		}
	}
	burst = often * units
	for i := range e.units {
		same := h.sameHour(i)
		if h.clock && known(same) {
			e.units[i] = today * same
			continue
		}
		e.units[i] = level + burst
	}
	e.noise = size
	if mean := mean(e.units); mean > 0 {
		e.noise += burst * units / mean
	}
	return e
}

// levelOf returns the mean of the known values over the half-lives, of so many values each, and
// how much the half-lives differ, as the standard deviation of a logarithm.
func levelOf(values []float64, each float64) (level, differ float64) {
	var logs []float64
	for _, half := range halves() {
		m := weigh(values, func(i int) float64 { return math.Exp2(-float64(i) / (half * each)) })
		if !known(m) {
			return 0, 0
		}
		level += m / float64(len(halves()))
		logs = append(logs, math.Log(max(m, 1e-6)))
	}
	middle := mean(logs)
	for _, l := range logs {
		differ += (l - middle) * (l - middle) / float64(len(logs))
	}
	return level, math.Sqrt(differ)
}

// sameHour returns the mean of the bins about the same hour as the future bin i, on the one or two
// days before; NaN if the log has none.
func (h *habit) sameHour(i int) float64 {
	sum, n := 0.0, 0.0
	for day := 1; day <= 2; day++ {
		at := day*dayBins - 1 - i%dayBins
		for j := max(h.surge, at-hour/2); j <= at+hour/2 && j < len(h.units); j++ {
			sum, n = sum+h.units[j], n+1
		}
	}
	return sum / n
}

// days predicts the bins of a week or a month by whole days of the log, because the hours of a day
// belong together: half of it by the same weekday, where the log has one, and half by all days.
func (e *expected) days(n int) {
	sums := dailyMeans(e.habit.units)
	length := min(dayBins, len(e.habit.units))
	uneven, m := 1.0, mean(sums) // a log of less than two days tells nothing
	if len(sums) > 1 && m > 0 {
		square := 0.0
		for _, sum := range sums {
			square += (sum/m - 1) * (sum/m - 1) / float64(len(sums)-1)
		}
		uneven = math.Log(1 + square)
	}
	e.spans = max(1, float64(len(sums)))
	e.level = math.Sqrt(uneven/e.spans + shift*shift*min(1, float64(n)/float64(30*dayBins)))
	e.noise = e.size
	for i := range e.units {
		bins := make([]float64, 0, len(sums))
		for j := length - 1 - i%length; j < len(e.habit.units); j += length {
			bins = append(bins, e.habit.units[j])
		}
		e.units[i], _ = levelOf(bins, 1)
		var same []float64 // of the same weekday
		for week := 6 - i/length%7; length == dayBins && week < len(bins); week += 7 {
			same = append(same, bins[week])
		}
		if len(same) > 0 {
			e.units[i] = (e.units[i] + mean(same)) / 2
		}
	}
}

// daily returns the mean of the bins of each whole day, back from now.
func dailyMeans(units []float64) (means []float64) {
	for day := range slices.Chunk(units[:len(units)/dayBins*dayBins], dayBins) {
		means = append(means, mean(day))
	}
	return means
}

// at returns the load that so many of the days do not exceed: with a level times the expected one,
// with the current surge as long as that, and with an incident if so few days are without.
func (e *expected) at(part, level float64) load {
	l := make(load, len(e.units))
	surge := e.goesOn(part)
	most := e.bound()
	for i, units := range e.units {
		l[i] = min(level*units, max(units, most))
		if i < surge {
			l[i] = e.present * min(level, 2)
		}
	}
	if begins := (1 - part) / e.strikes; begins < 1 {
		from, to := int(begins*float64(len(l))), len(l)
		if e.far { // somebody notices it within a day
			to = min(to, from+dayBins)
		}
		for i := from; i < to; i++ {
			l[i] += e.budget * bin.Hours() / empties
		}
	}
	return l
}

// bound returns the most units of a bin that the log makes credible: three times as many as in its
// busiest stretch as long as the time ahead. A few large charges say so little about the
// coming ones that the spread alone would allow many times as much.
func (e *expected) bound() float64 {
	log := e.habit.units
	length := min(len(e.units), len(log))
	sum, most := 0.0, 0.0
	for i, units := range log {
		if sum += units; i >= length {
			sum -= log[i-length]
		}
		most = max(most, sum)
	}
	return 3 * most / float64(length)
}

// goesOn returns for how many bins the current surge continues on the day that a part of all days
// do not exceed.
func (e *expected) goesOn(part float64) int {
	switch {
	case e.surge == 0:
		return 0
	case 1-part < e.runaway && e.far:
		return dayBins
	case 1-part < e.runaway:
		return len(e.units)
	}
	ends := part / (1 - e.runaway) // among the days on which it ends by itself
	return int(math.Round(min(float64(len(e.units)), -math.Log(1-ends)*e.length)))
}
