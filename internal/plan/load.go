package plan

import (
	"math"
	"slices"
	"time"
)

// Unscheduled spending is predicted from the hours just before, or from the same hours of the day
// before, whichever was closer in the log. The errors of such predictions give the low and the high
// load.

const (
	// hourBins and dayBins are the numbers of bins in an hour and in a day.
	hourBins = int(time.Hour / bin)
	dayBins  = 24 * hourBins
	// maxLead is the maximum number of bins ahead for which predictions are compared with the log.
	maxLead = 12 * hourBins
	// halfLife is the half-life of the weight of earlier bins, halfLifeDays that of earlier days.
	halfLife     = 6 * hourBins
	halfLifeDays = 6
	// tailFraction is the fraction of days that spend less than the low load, and of those that
	// spend more than the high one.
	tailFraction = 0.1
	// maxErrorRatio is the maximum ratio of the squared error of predictions by the clock to that
	// of other predictions.
	maxErrorRatio = 0.5
	// spreadRatio is the ratio of the spread of coming days to that of the hours in the log. It was
	// chosen so that the interval holds in eight of ten days (see TestCoverage).
	spreadRatio = 1.4
	// maxHighRatio is the maximum ratio of the high load to the expected one, because a few large
	// charges predict little.
	maxHighRatio = 3
	// initialError is the squared error assumed before the first comparison.
	initialError = 0.01
	// monthDeviation is the standard deviation, as a logarithm, of a coming month's level beyond
	// the variation in the log: people start and stop jobs. It was chosen so that the interval
	// holds in eight of ten months (see TestMonths).
	monthDeviation = 0.35
)

// load is unscheduled spending by bin from now.
type load []float64

func (l load) perHour() float64 { return mean(l) / bin.Hours() }

// loads returns the 10th percentile, the median and the 90th percentile of unscheduled spending in
// the next n bins.
func (h *habit) loads(n int) (low, likely, high load) {
	units, spread := h.expect(n)
	spans := max(1, float64(len(h.units))/float64(2*n))
	at := func(part float64) load {
		l := make(load, n)
		z := math.Sqrt2 * math.Erfinv(2*part-1) // quantile of the normal distribution
		z += z * (z*z + 1) / (4 * spans)        // of Student's t (Cornish and Fisher)
		sum, expected := 0.0, 0.0
		for i := range l {
			expected += units[i]
			level := min(math.Exp(spread(i+1)*z), maxHighRatio)
			l[i] = max(0, level*expected-sum)
			sum += l[i]
			if h.runaway > 1-part && (i < noticedAfter || n <= 2*dayBins) {
				l[i] = max(l[i], h.present*min(level, 2))
			}
			if part > 0.5 && h.incidents > 0 && i >= n/3 && n <= 2*dayBins {
				l[i] += h.budget * bin.Hours() / incidentHours
			}
		}
		return l
	}
	return at(tailFraction), at(0.5), at(1 - tailFraction)
}

// expect predicts the next n bins. spread returns the standard deviation of the logarithm of the
// error of a sum of bins: the error of their level, and the noise of each, which the sum evens out.
func (h *habit) expect(n int) (units []float64, spread func(bins int) float64) {
	if n > 2*dayBins {
		units, days := h.days(n)
		return units, func(int) float64 { return days }
	}
	clock := len(h.units) >= dayBins+maxLead &&
		h.errorOf(maxLead, true) < maxErrorRatio*h.errorOf(maxLead, false)
	units = h.predict(0, n, clock)
	for i, flat := range h.predict(0, n, false) {
		switch {
		case known(units[i]):
		case known(flat):
			units[i] = flat
		default: // all of the log is a surge
			units[i] = 0
		}
	}
	short, long := h.errorOf(hourBins, clock), h.errorOf(maxLead, clock)
	noise := max(0, short-long) / (1/float64(hourBins) - 1/float64(maxLead)) // variance of one bin
	level := max(0, long-noise/float64(maxLead))
	return units, func(bins int) float64 {
		return spreadRatio * math.Sqrt(level+noise/float64(bins))
	}
}

// predict predicts the n bins after bin o from the log before them. By the clock, a bin is NaN if
// the log does not contain the day before.
func (h *habit) predict(o, n int, clock bool) []float64 {
	units := make([]float64, n)
	if clock {
		ratio := h.ratio(o)
		for i := range units {
			before := o - 1 - i + dayBins*(1+i/dayBins)
			units[i] = ratio * mean([]float64{h.around(before), h.around(before + dayBins)})
		}
		return units
	}
	level := weigh(h.ordinary[o:],
		func(i int) float64 { return math.Exp2(-float64(i) / float64(halfLife)) })
	for i := range units {
		units[i] = level
	}
	return units
}

// around returns the mean of the hour about a bin; NaN if the log has none.
func (h *habit) around(i int) float64 {
	from, to := max(0, i-hourBins/2), min(len(h.units), i+hourBins/2+1)
	if from >= to {
		return math.NaN()
	}
	return mean(h.units[from:to])
}

// ratio returns how the six hours before bin o compare with the day before. Adding three average
// hours to both sides limits the effect of a few hours.
func (h *habit) ratio(o int) float64 {
	now := 3 * float64(hourBins) * mean(h.units)
	then := now
	for i := o; i < min(o+6*hourBins, len(h.units)); i++ {
		if before := h.around(i + dayBins); known(before) {
			now, then = now+h.units[i], then+before
		}
	}
	if then == 0 {
		return 1
	}
	return now / then
}

// errorOf returns the error of predictions of n bins in the log, as the variance of a logarithm.
// Adding a charge, or a twelfth of the average, to both sides limits the effect of a few units.
func (h *habit) errorOf(n int, clock bool) float64 {
	few := max(h.size, float64(n)/12*mean(h.ordinary))
	square, count := initialError, 1.0
	for o := n; few > 0 && o < min(len(h.units), dayBins+maxLead); o += hourBins { // NaN: surge
		spent, expected := few, few
		for i, predicted := range h.predict(o, n, clock) {
			if units := h.ordinary[o-1-i]; known(units + predicted) {
				spent, expected = spent+units, expected+predicted
			}
		}
		square, count = square+math.Pow(math.Log(spent/expected), 2), count+1
	}
	return square / count
}

// days predicts the bins of a week or a month by whole days of the log, because the hours of a day
// belong together: half the weight is on the same weekday, if the log has one, and half on all
// days.
func (h *habit) days(n int) (units []float64, spread float64) {
	units = make([]float64, n)
	length := min(dayBins, len(h.units))
	for i := range units {
		var bins, same []float64
		for j := length - 1 - i%length; j < len(h.units); j += length {
			bins = append(bins, h.units[j])
		}
		for week := 6 - i/length%7; length == dayBins && week < len(bins); week += 7 {
			same = append(same, bins[week])
		}
		units[i] = weigh(bins, func(i int) float64 { return math.Exp2(-float64(i) / halfLifeDays) })
		if len(same) > 0 {
			units[i] = (units[i] + mean(same)) / 2
		}
	}
	var sums []float64
	for day := range slices.Chunk(h.units[:len(h.units)/length*length], length) {
		sums = append(sums, mean(day))
	}
	uneven, m := 1.0, mean(sums) // a log of less than two days shows no variation
	if len(sums) > 1 && m > 0 {
		uneven = 0
		for _, sum := range sums {
			uneven += (sum/m - 1) * (sum/m - 1) / float64(len(sums)-1)
		}
	}
	drift := monthDeviation * monthDeviation * min(1, float64(n)/float64(30*dayBins))
	return units, math.Sqrt(uneven/float64(len(sums)) + drift)
}

// known reports whether the log contains a value; NaN means it does not.
func known(units float64) bool { return !math.IsNaN(units) }

// mean returns the mean of the known values, or NaN if there are none.
func mean(units []float64) float64 { return weigh(units, func(int) float64 { return 1 }) }

// weigh returns the weighted mean of the known values, or NaN if there are none.
func weigh(units []float64, weight func(i int) float64) float64 {
	sum, all := 0.0, 0.0
	for i, u := range units {
		if known(u) {
			sum, all = sum+weight(i)*u, all+weight(i)
		}
	}
	return sum / all
}
