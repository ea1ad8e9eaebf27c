package forecast

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The days of a week or a month ahead are drawn from the log as whole days, because the hours of
// a day belong together. A day resembles either the same weekday in the log or any recent day.

// shift is the standard deviation, as a logarithm, of a coming month's level beyond the variation
// in the log: people start and stop things. It was chosen so that the interval holds in eight of
// ten months (see TestMonths).
const shift = 0.35

// distance sets the uncertainty of the level of the next n bins.
func (d *dice) distance(n int) {
	sums := daily(d.units)
	uneven, m := 1.0, mean(sums) // a log of less than two days tells nothing
	if len(sums) > 1 && m > 0 {
		square := 0.0
		for _, sum := range sums {
			square += (sum/m - 1) * (sum/m - 1) / float64(len(sums)-1)
		}
		uneven = math.Log(1 + square)
	}
	d.spans = max(1, float64(len(sums)))
	d.flat = math.Sqrt(uneven/d.spans + shift*shift*min(1, float64(n)/float64(30*dayBins)))
}

// daily returns the mean of the bins of each whole day, back from now.
func daily(units []float64) (means []float64) {
	for day := range slices.Chunk(units[:len(units)/dayBins*dayBins], dayBins) {
		means = append(means, mean(day))
	}
	return means
}

// distant fills the bins after the surge with days of the log, or with part of one. half is one
// of halves, in days.
func (d *dice) distant(wants []float64, half float64, surge int, level float64, r *rand.Rand) {
	length := min(dayBins, len(d.units))
	sums := make([]float64, len(d.units)/length)
	for j := range sums {
		if sums[j] = math.Exp2(-float64(j) / half); j > 0 {
			sums[j] += sums[j-1]
		}
	}
	for from := 0; from < len(wants); from += length {
		j := d.like(from/length, sums, r)
		for i := from; i < min(from+length, len(wants)); i++ {
			part := r.Float64()
			if i < surge {
				wants[i] += d.present[int(part*float64(len(d.present)))]
				continue
			}
			wants[i] += level * d.units[(j+1)*length-1-(i-from)]
		}
	}
}

// like returns the day of the log to use for a future day. Every other day uses the same weekday
// of one or two weeks before, if the log has it.
func (d *dice) like(day int, sums []float64, r *rand.Rand) int {
	alike, any := r.Float64(), r.Float64()
	same := 6 - day%7
	if alike < 0.25 {
		same += 7
	}
	if alike < 0.5 && same < len(sums) && len(d.units) >= dayBins {
		return same
	}
	return pick(sums, any)
}
