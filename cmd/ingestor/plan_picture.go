package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"

	"quotabudget/internal/plan"
	"quotabudget/internal/report"
)

// pictureSize is the size of a picture on a terminal.
type pictureSize struct {
	Columns, Rows int // of the area inside the axes
	Color         bool
	Money         func(int64) string // formats units of a bucket of money; nil for others
}

// pictureOf draws one limit in units, with a line at its Cap. It returns "" for a series without a
// step.
func pictureOf(s plan.Series, size pictureSize) string {
	use := report.Peaks(s.Use, size.Columns)
	if len(use) == 0 {
		return ""
	}
	limit := make([]float64, size.Columns)
	for i := range limit {
		limit[i] = float64(s.Cap)
	}
	form := "01-02 15h"
	if endOf(s).Sub(s.Start) > 5*24*time.Hour {
		form = "2006-01-02"
	}
	caption := fmt.Sprintf("units used, of %d", s.Cap)
	if size.Money != nil {
		caption = "money used, of " + size.Money(s.Cap)
	}
	options := []asciigraph.Option{
		asciigraph.Height(size.Rows), asciigraph.Width(size.Columns), asciigraph.Precision(0),
		asciigraph.LowerBound(0), asciigraph.UpperBound(max(1, float64(s.Cap))),
		asciigraph.XAxisRange(float64(s.Start.Unix()), float64(endOf(s).Unix())),
		asciigraph.XAxisTickCount(4),
		asciigraph.XAxisValueFormatter(func(v float64) string {
			return time.Unix(int64(v), 0).UTC().Format(form)
		}),
		asciigraph.Caption(fmt.Sprintf("%s: %s for scheduled charges; times in UTC", s.Limit.Name(),
			caption)),
	}
	if size.Money != nil {
		options = append(options, asciigraph.YAxisValueFormatter(func(v float64) string {
			return size.Money(int64(v))
		}))
	}
	if size.Color {
		options = append(options, asciigraph.SeriesColors(asciigraph.Red, asciigraph.Green))
	}
	var text strings.Builder
	for line := range strings.Lines(asciigraph.PlotMany([][]float64{limit, use}, options...)) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return text.String()
}

// endOf returns the end of the last step.
func endOf(s plan.Series) time.Time { return s.Start.Add(time.Duration(len(s.Use)) * s.Step) }
