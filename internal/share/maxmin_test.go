package share

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMaxMin(t *testing.T) {
	type claims [][4]int64 // demand, weight, priority and floor of each
	for _, c := range []struct {
		name      string
		capacity  int64
		claimants claims
		want      []int64
	}{
		{"nobody", 100, nil, []int64{}},
		{"nothing", 0, claims{{5, 1}}, []int64{0}},
		{"less than nothing", -5, claims{{5, 1, 0, 2}}, []int64{0}},
		{"enough", 100, claims{{5, 1}, {7}}, []int64{5, 7}},
		{"one leaves 13", 100, claims{{80, 1}, {60, 1}, {20, 1}}, []int64{40, 40, 20}},
		{"the odd units go to the first", 11, claims{{9, 1}, {9, 1}, {9, 1}}, []int64{4, 4, 3}},
		{"by weight", 100, claims{{100, 3}, {100, 1}}, []int64{75, 25}},
		{"largest remainder before order", 10, claims{{10, 1}, {10, 2}, {10, 3}}, []int64{2, 3, 5}},
		{"what the heavy one leaves", 100, claims{{40, 9}, {100, 2}, {100, 1}},
			[]int64{40, 40, 20}},
		{"a floor below the share changes nothing", 90, claims{{90, 1, 0, 20}, {90, 1}, {90, 1}},
			[]int64{30, 30, 30}},
		{"a floor above the share", 90, claims{{90, 1, 0, 50}, {90, 1}, {90, 1}},
			[]int64{50, 20, 20}},
		{"a floor above the demand", 90, claims{{10, 1, 0, 50}, {90, 1}}, []int64{10, 80}},
		{"floors above the capacity", 50, claims{{90, 7, 0, 10}, {90, 1, 0, 40}, {90, 9, 0, 60},
			{90, 9}}, []int64{10, 20, 20, 0}},
		{"no weight: nothing when short", 10, claims{{10}, {10, 1}}, []int64{0, 10}},
		{"no weight: what is left", 15, claims{{10}, {10}, {10, 1}}, []int64{3, 2, 10}},
		{"no weight, but a floor", 10, claims{{10, 0, 0, 4}, {10, 1}}, []int64{4, 6}},
		{"no weights at all", 9, claims{{10}, {2}, {10}}, []int64{4, 2, 3}},
		{"priority before weight", 100, claims{{60, 9}, {60, 1, 2}, {60, 1, 1}},
			[]int64{0, 60, 40}},
		{"weights among equal priorities", 100, claims{{80, 3, 1}, {80, 1, 1}, {80, 1}},
			[]int64{75, 25, 0}},
		{"a floor before priorities", 100, claims{{90, 1, 0, 20}, {90, 1, 1}}, []int64{20, 80}},
		{"a priority without weight: after those with one", 15, claims{{10, 0, 5}, {10, 1}, {10}},
			[]int64{5, 10, 0}},
		{"negative figures", 10, claims{{-5, -1, 0, -3}, {20, 1}}, []int64{0, 10}},
		{"huge figures", math.MaxInt64 - 1, claims{{math.MaxInt64, math.MaxInt64},
			{math.MaxInt64, MaxWeight}}, []int64{math.MaxInt64 / 2, math.MaxInt64 / 2}},
	} {
		var claimants []Claimant
		for _, f := range c.claimants {
			claimants = append(claimants, Claimant{f[0], f[1], f[2], f[3]})
		}
		if got := MaxMin(c.capacity, claimants); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// drawClaimants draws claimants with similar numbers, so that ties and bounds are common.
func drawClaimants(t *rapid.T) []Claimant {
	most := rapid.SampledFrom([]int64{6, 60, 1 << 40}).Draw(t, "most")
	claimant := rapid.Custom(func(t *rapid.T) Claimant {
		draw := func(what string, low, high int64) int64 {
			return rapid.Int64Range(low, high).Draw(t, what)
		}
		return Claimant{
			Demand: draw("demand", 0, most), Weight: draw("weight", 0, 4),
			Priority: draw("priority", -1, 1) * draw("preferred", 0, 1),
			Floor:    draw("floor", 0, most) * draw("floored", 0, 1),
		}
	})
	return rapid.SliceOfN(claimant, 1, 9).Draw(t, "claimants")
}

func drawCapacity(t *rapid.T, claimants []Claimant) int64 {
	var all int64
	for _, c := range claimants {
		all += c.Demand
	}
	return rapid.Int64Range(0, all+all/4+1).Draw(t, "capacity")
}

// least returns a claimant's minimum if the floors fit into the capacity.
func (c Claimant) least() int64 { return min(c.Floor, c.Demand) }

func TestMaxMin_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claimants := drawClaimants(t)
		capacity := drawCapacity(t, claimants)
		got := MaxMin(capacity, claimants)
		if again := MaxMin(capacity, claimants); !slices.Equal(got, again) {
			t.Fatalf("%v, then %v", got, again)
		}
		var floors, wanted int64
		for i, c := range claimants {
			floors, wanted = floors+c.least(), wanted+c.Demand
			if got[i] < 0 || got[i] > c.Demand {
				t.Fatalf("%d of %v: %d is more than it wants", i, got, got[i])
			}
		}
		if want := min(capacity, wanted); total(got) != want {
			t.Fatalf("%v: sum %d, want %d", got, total(got), want)
		}
		for i, c := range claimants {
			least := c.least()
			if floors <= capacity && got[i] < least || floors > capacity && got[i] > least {
				t.Fatalf("%d of %v: floor %d, all floors %d of %d", i, got, least, floors, capacity)
			}
			if got[i] < c.Demand {
				checkNoEnvy(t, claimants, got, i, floors > capacity)
			}
		}
	})
}

// checkNoEnvy checks, to one unit of rounding each, that if claimant i got less than it wanted,
// no lower rank has more than its minimum, and no equal rank has more for its weight.
func checkNoEnvy(t *rapid.T, claimants []Claimant, got []int64, i int, short bool) {
	mine := claimants[i]
	for j, c := range claimants {
		least := c.least()
		w, v := mine.Weight, c.Weight
		if short { // floors compete
			if got[i] < mine.least() && got[j] > got[i]+1 {
				t.Fatalf("%v: floor of %d envies that of %d", got, i, j)
			}
			continue
		}
		switch {
		case got[j] <= least:
		case w == 0 && v > 0:
		case w > 0 && v == 0:
			t.Fatalf("%v: %d envies %d, who has no weight", got, i, j)
		case mine.Priority < c.Priority:
		case mine.Priority > c.Priority, w == v && got[j] > got[i]+1, (got[j]-1)*w > (got[i]+1)*v:
			t.Fatalf("%v: %d envies %d", got, i, j)
		}
	}
}

// TestMaxMin_Capacity: with more capacity no claimant gets less, except one unit of rounding when
// weights differ.
func TestMaxMin_Capacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claimants := drawClaimants(t)
		capacity := drawCapacity(t, claimants)
		slack := int64(1)
		if rapid.Bool().Draw(t, "equal weights") {
			slack = 0
			for i := range claimants {
				claimants[i].Weight = 2
			}
		}
		got := MaxMin(capacity, claimants)
		more := MaxMin(capacity+rapid.Int64Range(1, 5).Draw(t, "more"), claimants)
		for i := range got {
			if more[i] < got[i]-slack {
				t.Fatalf("%v, with more to share %v", got, more)
			}
		}
	})
}

// TestMaxMin_Order: a different order moves at most one indivisible unit per claimant.
func TestMaxMin_Order(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claimants := drawClaimants(t)
		capacity := drawCapacity(t, claimants)
		index := make([]int, len(claimants))
		for i := range index {
			index[i] = i
		}
		index = rapid.Permutation(index).Draw(t, "order")
		other := make([]Claimant, len(claimants))
		for i, from := range index {
			other[i] = claimants[from]
		}
		got, moved := MaxMin(capacity, claimants), MaxMin(capacity, other)
		for i, from := range index {
			if d := got[from] - moved[i]; d < -1 || d > 1 {
				t.Fatalf("%v, in the order %v %v", got, index, moved)
			}
		}
	})
}
