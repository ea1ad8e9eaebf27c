// Package picture draws how limits are used over time: for a terminal, and as SVG.
package picture

import (
	"slices"
	"time"

	"quotabudget/internal/plan"
)

// spread is the series in so many columns, each with the peak of the steps that it stands for.
// Where there are fewer steps than columns a step takes several. It is empty for a series without a
// step.
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
