package share

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
)

func TestMaxMin(t *testing.T) {
	type claims [][4]int64 // demand, weight, priority and floor of each
	for _, c := range []struct {
		name     string
		capacity float64
		claims   claims
		want     []float64
	}{
		{"nobody", 100, nil, []float64{}},
		{"nothing", 0, claims{{5, 1}}, []float64{0}},
		{"enough", 100, claims{{5, 1}, {7}}, []float64{5, 7}},
		{"one leaves 13", 100, claims{{80, 1}, {60, 1}, {20, 1}}, []float64{40, 40, 20}},
		{"parts of units", 11, claims{{9, 1}, {9, 1}}, []float64{5.5, 5.5}},
		{"by weight", 100, claims{{100, 3}, {100, 1}}, []float64{75, 25}},
		{"what the heavy one leaves", 100, claims{{40, 9}, {100, 2}, {100, 1}},
			[]float64{40, 40, 20}},
		{"a floor below the share changes nothing", 90, claims{{90, 1, 0, 20}, {90, 1}, {90, 1}},
			[]float64{30, 30, 30}},
		{"a floor above the share", 90, claims{{90, 1, 0, 50}, {90, 1}, {90, 1}},
			[]float64{50, 20, 20}},
		{"a floor above the demand", 90, claims{{10, 1, 0, 50}, {90, 1}}, []float64{10, 80}},
		{"floors above the capacity", 50, claims{{90, 7, 0, 10}, {90, 1, 0, 40}, {90, 9, 0, 60},
			{90, 9}}, []float64{10, 20, 20, 0}},
		{"no weight: nothing when short", 10, claims{{10}, {10, 1}}, []float64{0, 10}},
		{"no weight: what is left", 15, claims{{10}, {10}, {10, 1}}, []float64{2.5, 2.5, 10}},
		{"no weight, but a floor", 10, claims{{10, 0, 0, 4}, {10, 1}}, []float64{4, 6}},
		{"no weights at all", 8, claims{{10}, {2}, {10}}, []float64{3, 2, 3}},
		{"priority before weight", 100, claims{{60, 9}, {60, 1, 2}, {60, 1, 1}},
			[]float64{0, 60, 40}},
		{"weights among equal priorities", 100, claims{{80, 3, 1}, {80, 1, 1}, {80, 1}},
			[]float64{75, 25, 0}},
		{"a floor before priorities", 100, claims{{90, 1, 0, 20}, {90, 1, 1}}, []float64{20, 80}},
		{"a priority without weight: after those with one", 15, claims{{10, 0, 5}, {10, 1}, {10}},
			[]float64{5, 10, 0}},
	} {
		var list []claim
		for _, f := range c.claims {
			list = append(list, claim{float64(f[0]), float64(f[1]), f[2], float64(f[3])})
		}
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		if got := maxMin(c.capacity, list); !slices.EqualFunc(got, c.want, near) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestMaxMin_Properties: the units are used up, floors come first, and no claim envies another.
func TestMaxMin_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string, low, high int64) float64 {
			return float64(rapid.Int64Range(low, high).Draw(t, what))
		}
		most := rapid.SampledFrom([]int64{6, 60, 1 << 40}).Draw(t, "most")
		var claims []claim
		var floors, wanted float64
		for range rapid.IntRange(1, 9).Draw(t, "claims") {
			c := claim{draw("demand", 0, most), draw("weight", 0, 4),
				int64(draw("priority", -1, 1)), draw("floor", 0, most) * draw("floored", 0, 1)}
			claims = append(claims, c)
			floors, wanted = floors+min(c.floor, c.demand), wanted+c.demand
		}
		capacity := draw("capacity", 0, int64(wanted+wanted/4+1))
		got, sum, off := maxMin(capacity, claims), 0.0, 1e-9*(capacity+1)
		for _, units := range got {
			sum += units
		}
		if want := min(capacity, wanted); math.Abs(sum-want) > off {
			t.Fatalf("%v: sum %v, want %v", got, sum, want)
		}
		for i, c := range claims {
			floor := min(c.floor, c.demand)
			if got[i] < 0 || got[i] > c.demand ||
				floors <= capacity && got[i] < floor-off || floors > capacity && got[i] > floor+off {
				t.Fatalf("%d of %v: floor %v, demand %v", i, got, floor, c.demand)
			}
			for j, other := range claims {
				above := got[j] > min(other.floor, other.demand)+off
				if got[i] >= c.demand-off || !above || c.compare(other) > 0 {
					continue
				}
				if c.compare(other) < 0 || got[j]*max(c.weight, 1) > got[i]*max(other.weight, 1)+4*off {
					t.Fatalf("%v: %d envies %d", got, i, j)
				}
			}
		}
	})
}

// TestShares_Month: a month's units are divided over its ticks, and a floor is units per day of
// that month.
func TestShares_Month(t *testing.T) {
	for month, days := range map[time.Month]int64{time.April: 30, time.December: 31,
		time.February: 28} {
		from := time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)
		rule := Rule{lanes(2, time.Hour, 1, weights(1, 0)), price, []quota.Limit{day(310)}, utc}
		rule.Limits[0].Window.Calendar = "month"
		rule.Lanes[1].Floor = 4
		s, until := rule.Begin().Shares(from.UnixMicro(), func(int) int64 { return 310 })
		if len(s) == 0 || !until.Equal(from.AddDate(0, 1, 0)) || s[1].Entitled != 4*days ||
			s[0].Entitled != 310-4*days {
			t.Errorf("%v: %v %+v", month, until, s)
		}
	}
	for _, text := range []string{"minute", "hour", "anchored 24h", "restoring 1/1h", "concurrent",
		"5h"} {
		if w, err := quota.ParseWindow(text, ""); err != nil || Shared(quota.Limit{Window: w}) {
			t.Errorf("%s is shared: %v", text, err)
		}
	}
}
