package report

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// charts are n charts of 200 places and 4 units, gap apart, each with fresh new videos at the end.
func charts(n, fresh int, gap time.Duration) (list []ReadChart) {
	start := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	places := make([]string, 200)
	for i := range places {
		places[i] = fmt.Sprint("first", i)
	}
	for k := range n {
		now := append([]string(nil), places...)
		for i := range fresh {
			now[199-i] = fmt.Sprint(k, "-", i)
		}
		list = append(list, ReadChart{At: start.Add(time.Duration(k) * gap), Units: 4, Places: now})
	}
	return list
}

func TestCompare(t *testing.T) {
	const h = time.Hour
	lane := func(region string, every time.Duration, n, fresh int) ReadLane {
		return ReadLane{region, every, charts(n, fresh, every)}
	}
	for _, c := range []struct {
		name  string
		lanes []ReadLane
		want  []time.Duration
		units []float64
	}{
		{"the example above", []ReadLane{lane("US", 3*h, 5, 40), lane("CA", 3*h, 5, 10)},
			[]time.Duration{2 * h, 8 * h}, []float64{10, 2.5}}, // 1 h 52 min and 7 h 30 min
		{"alike", []ReadLane{lane("US", 3*h, 5, 40), lane("CA", 3*h, 3, 40)},
			[]time.Duration{3 * h, 3 * h}, []float64{10, 10}},
		{"as much new in twice the time", []ReadLane{lane("US", 3*h, 5, 40), lane("CA", 6*h, 5, 40)},
			[]time.Duration{3 * h, 6 * h}, []float64{10, 10}},
		{"nothing changes", []ReadLane{lane("US", 3*h, 5, 40), lane("CA", 3*h, 5, 0)},
			[]time.Duration{90 * time.Minute, 12 * h}, []float64{10, 0}},
		{"nobody changes", []ReadLane{lane("US", 3*h, 5, 0)}, []time.Duration{12 * h}, []float64{0}},
		{"no history", []ReadLane{lane("US", 3*h, 5, 40), lane("CA", 3*h, 1, 0), lane("BR", 3*h, 0, 0)},
			[]time.Duration{3 * h, 0, 0}, []float64{10, 0, 0}},
		{"all within minutes", []ReadLane{{"US", 3 * h, charts(5, 0, time.Minute)}},
			[]time.Duration{0}, []float64{0}},
		{"longer than a day", []ReadLane{lane("US", 24*h, 5, 40), lane("CA", 24*h, 5, 0)},
			[]time.Duration{12 * h, 96 * h}, []float64{10, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, got := range CompareCharts(c.lanes) {
				if got.Proposed != c.want[i] || math.Abs(got.PerUnit-c.units[i]) > 1e-9 {
					t.Errorf("%s: %s, %v a unit; want %s, %v", got.Region, got.Proposed,
						got.PerUnit, c.want[i], c.units[i])
				}
			}
		})
	}
}

func TestMeasure(t *testing.T) {
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	got := measure(ReadLane{Charts: []ReadChart{
		{at, 9, []string{"a", "b", "c", "d"}},
		// all four moved, one new
		{at.Add(time.Hour), 1, []string{"x", "a", "b", "c"}},
		// two of four moved, one new
		{at.Add(3 * time.Hour), 2, []string{"x", "a", "", "y", "c", "b"}},
		{at.Add(4 * time.Hour), 2, nil},
	}})
	if got.Pairs != 2 || got.Gap != 90*time.Minute || got.Moved != 0.75 || got.New != 0.25 ||
		got.Units != 3 || got.PerUnit != 2.0/3 {
		t.Errorf("%+v", got)
	}
}

// TestMeasureDepth: the same chart, read to another depth, has not changed.
func TestMeasureDepth(t *testing.T) {
	list := charts(4, 0, time.Hour)
	list[1].Places = list[1].Places[:50]
	list[3].Places = nil
	got := measure(ReadLane{Charts: list})
	if got.Pairs != 2 || got.Moved != 0 || got.New != 0 || got.Units != 8 {
		t.Errorf("%d pairs, %v moved, %v new, %d units", got.Pairs, got.Moved, got.New, got.Units)
	}
}
