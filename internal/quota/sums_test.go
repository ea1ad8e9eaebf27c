package quota_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"quotabudget/internal/quota"
)

// A tally adds up the same as a map, in whatever order and however much is added, and lists it in
// order.
func TestTallyAddsUp(t *testing.T) {
	grain := quota.Grain.Microseconds()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		var tally, other quota.Tally
		want := make(map[string]int64)
		for range 6000 {
			at, units := random.Int64N(6*grain), random.Int64N(9)
			line := fmt.Sprint("job=", random.IntN(9))
			tally.Add(at, line, units, 1)
			other.Add(at, line, 2*units, 2)
			other.Add(at-at%grain, line, -units, -1)
			other.Add(at, "gone", units, 1)
			other.Add(at, "gone", -units, -1)
			want[fmt.Sprint(at/grain, line)] += units
		}
		if found := tally.Differs(other); len(found) > 0 {
			t.Fatal(seed, found)
		}
		tally.Add(5*grain, "job=1", 1, 0)
		if found := other.Differs(tally); len(found) != 1 {
			t.Error(seed, found)
		}
		tally.Add(5*grain, "job=1", -1, 0)
		sums, err := tally.Sums(quota.SumQuery{})
		if err != nil || len(sums) != len(want) {
			t.Fatal(seed, len(sums), len(want), err)
		}
		last := ""
		for _, s := range sums {
			name := fmt.Sprint(s.At.UnixMicro()/grain, s.Labels.Encode())
			if s.Units != want[name] || name <= last {
				t.Errorf("%d: %s: %d, want %d, after %s", seed, name, s.Units, want[name], last)
			}
			last = name
		}
	}
}
