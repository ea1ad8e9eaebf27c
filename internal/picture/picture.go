// Package picture draws the use of limits over time: for a terminal, and as SVG.
package picture

import (
	"slices"
	"time"

	"quotabudget/internal/plan"
)

// spread returns the series in the given number of columns, each the peak of its steps. With
// fewer steps than columns a step fills several columns. It is empty for a series without a step.
func spread(use []int64, columns int) (peaks []float64) {
	if len(use) == 0 {
		return nil
	}
	for i := range columns {
		from := i * len(use) / columns
		to := max(from+1, (i+1)*len(use)/columns)
		peaks = append(peaks, float64(slices.Max(use[from:to])))
	}
	return peaks
}

func end(s plan.Series) time.Time { return s.Start.Add(time.Duration(len(s.Use)) * s.Step) }
