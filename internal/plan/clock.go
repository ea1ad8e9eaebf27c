package plan

import (
	"math"
	"slices"
)

// Some spending follows the hours of the day: people at work, or a job at two o'clock. This is
// not configured but tested: each hour of the last day is predicted from the hours just before
// it, and from the same hour of the day before.

const (
	dayHours = 24
	dayBins  = dayHours * hour
	// lead is how many hours ahead the test predicts, and how many predictions it needs.
	lead = 12
	// lately is the number of hours used to compare today with the day before.
	lately = 6
	// surely is the most that the error by the clock may be of the other one.
	surely = 0.7
	// memory is the half-life in hours of the weight of earlier hours in the test.
	memory = 8
	// initial is the squared error assumed before the first test.
	initial = 0.01
	// cautious is the number of average hours added to both sides of a comparison, so that a few
	// hours have little effect.
	cautious = 3
)

// trial is a prediction of hour j from hours at least o hours old.
type trial struct {
	j     int
	was   float64
	flat  float64 // from the hours just before
	clock float64 // from the day before; NaN if the log lacks it
}

// trials returns the predictions of the ahead hours after hour o, as far back as the log goes.
func trials(means []float64, o, ahead int) (all []trial) {
	flat, level := remember(means[o:]), ratio(means, o)
	for j := max(0, o-ahead); j < o; j++ {
		if known(means[j] + flat) {
			all = append(all, trial{j, means[j], flat, level * dayBefore(means, j)})
		}
	}
	return all
}

// followsClock reports whether the day before predicts the hours better than the hours before do.
// It takes a day and a half of log to tell.
func followsClock(units []float64, size float64) bool {
	means := hourly(units)
	flat, clock := off(means, lead, grain(units, size))
	return len(means) >= dayHours+lead && clock < flat*surely
}

// off returns the error of predictions over the given number of hours in the log, as the standard
// deviation of the logarithm beyond what charges of size grain explain. It is the expected error
// of the next prediction. Hours missing from the log, or without a day before, are skipped.
func off(means []float64, ahead int, grain float64) (flat, clock float64) {
	few := mean(means) // an average hour on both sides, so that few units have little effect
	square := func(was, said float64) float64 {
		noise := grain / (float64(hour) * (was + few))
		return max(0, math.Pow(math.Log((was+few)/(said+few)), 2)-noise)
	}
	squares, n := [2]float64{initial, initial}, [2]float64{1, 1}
	for o := ahead; few > 0 && o < min(len(means), dayHours+lead); o++ {
		var was, said, tried [2]float64
		for _, t := range trials(means, o, ahead) {
			for k, predicted := range [2]float64{t.flat, t.clock} {
				if known(predicted) {
					was[k], said[k], tried[k] = was[k]+t.was, said[k]+predicted, tried[k]+1
				}
			}
		}
		for k := range squares {
			if tried[k] > 0 {
				squares[k], n[k] = squares[k]+square(was[k], said[k]), n[k]+1
			}
		}
	}
	return math.Sqrt(squares[0] / n[0]), math.Sqrt(squares[1] / n[1])
}

// known reports whether the log contains a value; NaN means it does not.
func known(units float64) bool { return !math.IsNaN(units) }

// hourly returns the mean of the bins of each hour, back from now.
func hourly(units []float64) (means []float64) {
	for bins := range slices.Chunk(units[:len(units)/hour*hour], hour) {
		means = append(means, mean(bins))
	}
	return means
}

// mean returns the mean of the known values.
func mean(units []float64) float64 { return weigh(units, func(int) float64 { return 1 }) }

// remember returns the mean of hours, the first weighted most.
func remember(means []float64) float64 {
	return weigh(means, func(j int) float64 { return math.Exp2(-float64(j) / memory) })
}

// dayBefore returns the mean of hour j's neighbourhood on the day before.
func dayBefore(means []float64, j int) float64 {
	around := means[min(j+dayHours-1, len(means)):min(j+dayHours+2, len(means))]
	return weigh(around, func(k int) float64 { return [...]float64{1, 2, 1}[k] })
}

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

// ratio returns how the hours from o on compare with the day before.
func ratio(means []float64, o int) float64 {
	now := cautious * mean(means)
	if now == 0 {
		return 1
	}
	then := now
	for j := o; j < min(o+lately, len(means)); j++ {
		if before := dayBefore(means, j); known(means[j] + before) {
			now, then = now+means[j], then+before
		}
	}
	return now / then
}

// usualAt returns the usual units of bin i's hour, from the days before and after; 0 if unknown.
func (h *habit) usualAt(i int) float64 {
	if !h.clock {
		return 0
	}
	most := 0.0
	for _, other := range []int{i + dayBins, i - dayBins} {
		from, to := max(0, other-hour/2), min(len(h.units), other+hour/2+1)
		if from < to {
			most = max(most, mean(h.units[from:to]))
		}
	}
	return most
}
