package picture

import (
	"fmt"
	"image/color"
	"io"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"quotabudget/internal/plan"
)

// legendRow is the place of a line of the legend, above all curves, in per cent.
const legendRow = 7

// points is how many an SVG has at most of each limit.
const points = 1200

// SVG draws all limits in parts of what scheduled charges may have of them, and a mark for each hour in which a run gets less than it wants.
func SVG(w io.Writer, series []plan.Series, lost []time.Time) error {
	p := plot.New()
	p.Title.Text = "Units used, of those for scheduled charges"
	p.Y.Label.Text, p.Y.Min, p.Y.Max = "%", 0, 110
	p.Y.Tick.Marker, p.X.Tick.Marker = plot.TickerFunc(tens), plot.TickerFunc(days)
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for i, s := range series {
		if s.Limit.Pace != nil || len(s.Use) == 0 {
			continue
		}
		line, err := plotter.NewLine(percents(s))
		if err != nil {
			return err
		}
		line.Color, line.Width = plotutil.Color(i+1), vg.Points(1.2)
		p.Add(line)
		p.Legend.Add(fmt.Sprintf("%s, of %d", s.Limit.Name(), s.Cap), line)
		p.Y.Max += legendRow
	}
	p.Y.Max += legendRow
	if err := mark(p, lost); err != nil {
		return err
	}
	canvas := vgsvg.New(26*vg.Centimeter, 12*vg.Centimeter)
	p.Draw(draw.New(canvas))
	_, err := canvas.WriteTo(w)
	return err
}

func percents(s plan.Series) plotter.XYs {
	use := shrink(s.Use, points)
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
func mark(p *plot.Plot, lost []time.Time) error {
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
	p.Legend.Add("runs that get less than they want", marks)
	return nil
}
