package forecast

import (
	"math"
	"slices"
	"testing"
)

func TestBelief(t *testing.T) {
	// The tenths of a gamma distribution of the shape 4, from a table.
	for normal, want := range map[float64]float64{-1.2816: 1.7448 / 4, 0: 3.6721 / 4, 1.2816: 6.6808 / 4} {
		if got := gamma(4, normal); math.Abs(got-want) > 0.01 {
			t.Errorf("gamma(4, %v) = %.3f, want %.3f", normal, got, want)
		}
	}
	b := belief{1, 2}.and(5, 10)
	if b.rate() != 0.5 {
		t.Errorf("rate %v", b.rate())
	}
	sum, mean := 0.0, 0.0
	for n := range 100 {
		p := b.likely(float64(n), 4)
		sum, mean = sum+p, mean+p*float64(n)
	}
	if math.Abs(sum-1) > 1e-6 || math.Abs(mean-2) > 1e-3 || b.likely(3, 0) != 1 {
		t.Errorf("all counts are %v likely, their mean is %v, want 1 and 2", sum, mean)
	}
}

// What is dealt has every tenth of the chances in a tenth of the days.
func TestDeal(t *testing.T) {
	for i, deck := range deal(mostDays) {
		if slices.IsSorted(deck) {
			t.Errorf("deck %d is not shuffled", i)
		}
		slices.Sort(deck)
		if deck[mostDays/10-1] >= 0.1 || deck[mostDays/10] <= 0.1 || deck[0] <= 0 || deck[mostDays-1] >= 1 {
			t.Errorf("deck %d: %v", i, deck)
		}
	}
}

// A habit that became another one six hours ago is found out, and one that did not is left whole.
func TestStretches(t *testing.T) {
	start := habitSpan{belief{1, 1}, belief{1, 24 * float64(hour)}}
	hours := func(counts ...float64) (all []tally) {
		for _, n := range counts {
			all = append(all, tally{calm: n, seen: 6, looked: 6})
		}
		return all
	}
	for _, test := range []struct {
		name  string
		hours []tally
		want  int // hours
	}{
		{"one habit", hours(12, 9, 10, 11, 8, 10, 12, 10, 9, 11, 10, 8), 12},
		{"another for six hours", hours(22, 19, 20, 21, 18, 20, 12, 10, 9, 11, 10, 8), 6},
		{"blind for two hours between", append(append(hours(22, 19, 20), tally{}, tally{}), hours(10, 9, 11, 10)...), 3},
		{"nothing seen", make([]tally, 3), 3},
	} {
		chances, lasted := spans(test.hours, start)
		likeliest, sum := 0, 0.0
		for k, c := range chances {
			if sum += c; c > chances[likeliest] {
				likeliest = k
			}
		}
		if math.Abs(sum-1) > 1e-9 || len(lasted) != len(test.hours) {
			t.Errorf("%s: %v of %d", test.name, sum, len(lasted))
		}
		if got := likeliest + 1; got < test.want || got > test.want+2 {
			t.Errorf("%s: lasted for %d hours, want %d: %.3f", test.name, got, test.want, chances)
		}
	}
}
