// Package picture draws how limits are used over time: for a terminal, and as SVG.
package picture

import (
	"time"

	"quotabudget/internal/plan"
)

// shrink is the series in so many columns at most, each with the peak of what it stands for.
func shrink(use []int64, columns int) []float64 {
	columns = min(columns, len(use))
	points := make([]float64, columns)
	for i := range points {
		for _, u := range use[i*len(use)/columns : (i+1)*len(use)/columns] {
			points[i] = max(points[i], float64(u))
		}
	}
	return points
}

// end is when the last step of the series ends.
func end(s plan.Series) time.Time { return s.Start.Add(time.Duration(len(s.Use)) * s.Step) }
