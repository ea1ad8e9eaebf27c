package forecast

import (
	"math"
	"math/rand/v2"
	"sort"
)

// belief is what is known of a rate that is never quite known: so many counts in so many bins
// looked at. What it says of the rate is a gamma distribution, and of the next count a negative
// binomial one.
type belief struct{ count, looked float64 }

// and is the belief after more was seen.
func (b belief) and(count, looked float64) belief { return belief{b.count + count, b.looked + looked} }

// rate is the mean, in counts a bin.
func (b belief) rate() float64 { return b.count / b.looked }

// drawn is a rate that may be the true one, for a value of the normal distribution.
func (b belief) drawn(normal float64) float64 { return b.rate() * gamma(b.count, normal) }

// likely is how likely a count is in so many bins more.
func (b belief) likely(count, looked float64) float64 {
	if looked == 0 {
		return 1
	}
	all, _ := math.Lgamma(b.count + count)
	before, _ := math.Lgamma(b.count)
	more, _ := math.Lgamma(count + 1)
	return math.Exp(all - before - more + b.count*math.Log(b.looked/(b.looked+looked)) + count*math.Log(looked/(b.looked+looked)))
}

// gamma turns a value of the normal distribution into one of the gamma distribution of a shape,
// scaled to the mean 1 (by Wilson and Hilferty).
func gamma(shape, normal float64) float64 {
	c := 1 / (9 * shape)
	return max(0, math.Pow(1-c+normal*math.Sqrt(c), 3))
}

// What decides most about a day is not thrown for each day but dealt: of a hundred days, one in ten
// gets a chance of one in ten.
const (
	dealtView = iota
	dealtRunaway
	dealtIncident
	dealtWhen
	dealtPhase
	dealtClock
	decks
)

// deal shuffles the places among the days that are played, the same way every time.
func deal(days int) (deck [decks][]float64) {
	for i := range deck {
		deck[i] = make([]float64, days)
		for j, place := range rand.New(rand.NewPCG(uint64(i), 0x6465616c)).Perm(days) {
			deck[i][j] = (float64(place) + 0.5) / float64(days)
		}
	}
	return deck
}

// pick is the place in running sums at which a part of the whole, 0 to 1, lies.
func pick(sums []float64, part float64) int { return sort.SearchFloat64s(sums, part*sums[len(sums)-1]) }
