package picture

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"quotabudget/internal/plan"
)

// points is how many a curve has at most, unless it has one a day.
const points = 1500

// aDay is the length of a plan from which on a curve shows the peak of each day: more ups and downs of days could not be told
// from each other.
const aDay = 60 * 24 * time.Hour

// SVG draws all limits in parts of what scheduled charges may have of them, and a mark for each hour in which a run gets less
// than it wants. Of a long plan it draws the peak of each day, and a mark for each day.
func SVG(w io.Writer, series []plan.Series, lost []time.Time) error {
	p := plot.New()
	p.Title.Text = "Units used, of those for scheduled charges"
	if slices.ContainsFunc(series, daily) {
		p.Title.Text += ": the peak of each day"
		lost = slices.CompactFunc(slices.Clone(lost), func(a, b time.Time) bool {
			return a.Truncate(24 * time.Hour).Equal(b.Truncate(24 * time.Hour))
		})
	}
	p.Y.Label.Text, p.Y.Min, p.Y.Max = "%", 0, 110
	p.Y.Tick.Marker, p.X.Tick.Marker = plot.TickerFunc(tens), plot.TickerFunc(days)
	p.BackgroundColor = nil
	p.Add(plotter.NewGrid())
	legend := plot.NewLegend()
	legend.Left, legend.Top, legend.Padding = true, true, vg.Points(4)
	for i, s := range series {
		if s.Limit.Pace != nil || len(s.Use) == 0 {
			continue
		}
		line, err := plotter.NewLine(percents(s))
		if err != nil {
			return err
		}
		line.Color, line.Width, line.Dashes = plotutil.Color(i+1), vg.Points(1.2), plotutil.Dashes(i) // one may lie on another
		p.Add(line)
		legend.Add(fmt.Sprintf("%s, of %d", s.Limit.Name(), s.Cap), line)
	}
	if err := mark(p, &legend, lost); err != nil {
		return err
	}
	return lay(p, &legend, w)
}

// margin is around everything: fonts that are wider than those reckoned with need it too.
const margin = vg.Centimeter / 2

// lay writes the plot with the legend below it, so that neither lies on the other.
func lay(p *plot.Plot, legend *plot.Legend, w io.Writer) error {
	below := legend.Rectangle(draw.Canvas{}).Size().Y + margin
	svg := vgsvg.New(26*vg.Centimeter, 12*vg.Centimeter+below)
	whole := draw.New(svg)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	whole = draw.Crop(whole, margin, -2*margin, margin, -margin)
	p.Draw(draw.Crop(whole, 0, 0, below, 0))
	legend.Draw(draw.Crop(whole, 2*margin, 0, 0, below-margin-whole.Size().Y))
	_, err := svg.WriteTo(w)
	return err
}

// daily is whether a curve has one point a day.
func daily(s plan.Series) bool { return end(s).Sub(s.Start) > aDay }

// peaks are the points of a curve, evenly spread.
func peaks(s plan.Series) []float64 {
	if !daily(s) {
		return spread(s.Use, min(len(s.Use), points))
	}
	days := make([]float64, end(s).Sub(s.Start)/(24*time.Hour))
	for i, u := range s.Use {
		day := min(int(time.Duration(i)*s.Step/(24*time.Hour)), len(days)-1)
		days[day] = max(days[day], float64(u))
	}
	return days
}

func percents(s plan.Series) plotter.XYs {
	use := peaks(s)
	step := end(s).Sub(s.Start).Seconds() / float64(len(use))
	line := make(plotter.XYs, len(use))
	for i, u := range use {
		line[i].X = float64(s.Start.Unix()) + float64(i)*step
		if u > 0 {
			line[i].Y = 100 * u / max(1, float64(s.Cap))
		}
	}
	return line
}

// mark draws the runs that are lost, at the top.
func mark(p *plot.Plot, legend *plot.Legend, lost []time.Time) error {
	if len(lost) == 0 {
		return nil
	}
	at := make(plotter.XYs, len(lost))
	for i, t := range lost {
		at[i] = plotter.XY{X: float64(t.Unix()), Y: 104}
	}
	marks, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	marks.GlyphStyle = draw.GlyphStyle{Color: color.RGBA{R: 200, A: 255}, Radius: vg.Points(2), Shape: draw.CrossGlyph{}}
	p.Add(marks)
	legend.Add("runs that get less than they want", marks)
	return nil
}
