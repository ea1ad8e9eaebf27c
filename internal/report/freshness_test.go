package report

import (
	"testing"
	"time"
)

func TestCompareCharts(t *testing.T) {
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	got := CompareCharts([]ReadChart{
		{at, 9, []string{"a", "b", "c", "d"}},
		// all four moved, one new
		{at.Add(time.Hour), 1, []string{"x", "a", "b", "c"}},
		// two of four moved, one new
		{at.Add(3 * time.Hour), 2, []string{"x", "a", "", "y", "c", "b"}},
		{at.Add(4 * time.Hour), 2, nil},
	})
	if got.Pairs != 2 || got.Gap != 90*time.Minute || got.Moved != 0.75 || got.New != 0.25 ||
		got.Units != 3 || got.PerUnit != 2.0/3 {
		t.Errorf("%+v", got)
	}
}

// TestCompareCharts_Depth: a chart that is read to another depth has not changed.
func TestCompareCharts_Depth(t *testing.T) {
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	all := []string{"a", "b", "c", "d"}
	got := CompareCharts([]ReadChart{{at, 4, all}, {at.Add(time.Hour), 4, all[:1]},
		{at.Add(2 * time.Hour), 4, all}, {at.Add(3 * time.Hour), 4, nil}})
	if got.Pairs != 2 || got.Moved != 0 || got.New != 0 || got.Units != 8 {
		t.Errorf("%+v", got)
	}
}
