package limit

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

// Sizes of the picture, in px.
const (
	pictureWidth = 760
	plotLeft     = 110
	plotRight    = pictureWidth - 130
	barHeight    = 20
	plotHeight   = 110
	plotWindows  = 6 // number of windows of a curve to draw
)

// drawing is an SVG that grows downwards.
type drawing struct {
	body strings.Builder
	y    float64
}

func (d *drawing) print(format string, args ...any) { fmt.Fprintf(&d.body, format, args...) }

func (d *drawing) text(x, y float64, anchor, text string) {
	d.print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
		html.EscapeString(text))
}

func (d *drawing) heading(text string) {
	d.y += 34
	d.print("<text x=\"20\" y=\"%.1f\" font-weight=\"bold\">%s</text>\n", d.y,
		html.EscapeString(text))
	d.y += 12
}

// DrawProof draws a result as SVG.
func DrawProof(w io.Writer, r *Proof) error {
	var d drawing
	if r.Boundary != nil {
		d.boundary(r.Boundary)
	}
	for _, t := range r.Traffic {
		d.traffic(t)
	}
	if t := r.Retry; t != nil {
		d.heading(fmt.Sprintf("%d denied calls retried: %d allowed early (by %d µs or more), "+
			"%d denied on time", t.Denials, t.Early, t.Micros, t.Late))
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" `+
		`role="img" font-family="sans-serif" font-size="12">`+"\n<title>%s</title>\n"+
		`<rect width="100%%" height="100%%" fill="white"/>`+"\n%s</svg>\n",
		pictureWidth, d.y+24, "What limiting algorithms let through, on "+html.EscapeString(r.On),
		&d.body)
	return err
}

// boundary draws a bar for each algorithm, and the limit as a line.
func (d *drawing) boundary(b *Boundary) {
	d.heading(fmt.Sprintf("50 calls before and 50 after a boundary of the clock, limit %d in %gs",
		b.Limit, b.Window))
	x := func(n int64) float64 {
		return plotLeft + float64(n)*(plotRight-plotLeft)/float64(2*b.Limit)
	}
	top := d.y
	for _, bar := range b.bars() {
		color := "#009e73"
		if bar.allowed > b.Limit {
			color = "#d55e00"
		}
		d.text(plotLeft-8, d.y+14, "end", bar.algorithm)
		d.print("<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", plotLeft,
			d.y+2, x(bar.allowed)-plotLeft, barHeight-4, color)
		d.text(x(bar.allowed)+6, d.y+14, "start", fmt.Sprint(bar.allowed))
		d.y += barHeight
	}
	d.print("<path d=\"M%.1f %.1fV%.1f\" stroke=\"black\" stroke-dasharray=\"3 2\"/>\n", x(b.Limit),
		top, d.y)
}

// bar is the number of calls one algorithm allowed.
type bar struct {
	algorithm string
	allowed   int64
}

func (b *Boundary) bars() []bar {
	return []bar{{"fixed", b.Fixed}, {"counter", b.Counter}, {"log", b.Log}}
}

// traffic draws the counter's estimate and the true count.
func (d *drawing) traffic(t Traffic) {
	d.heading(fmt.Sprintf("%s calls: the counter's estimate beside the truth", t.Traffic))
	curve := t.Curve
	if len(curve) == 0 {
		return
	}
	end := curve[len(curve)-1].At
	if end > plotWindows*time.Minute {
		end = plotWindows * time.Minute
	}
	x := func(at time.Duration) float64 {
		return plotLeft + (plotRight-plotLeft)*float64(at)/float64(max(end, 1))
	}
	y := func(units int64) float64 {
		return d.y + plotHeight*(1-float64(units)/float64(2*t.Limit))
	}
	for _, units := range []int64{0, t.Limit, 2 * t.Limit} {
		d.text(plotLeft-8, y(units)+4, "end", fmt.Sprint(units))
		d.print("<path d=\"M%d %.1fH%d\" stroke=\"#ccc\"/>\n", plotLeft, y(units), plotRight)
	}
	for i, line := range []struct {
		name, style string
		units       func(TrafficPoint) int64
	}{
		{"truth", `stroke="#d55e00" stroke-width="2.5"`, func(p TrafficPoint) int64 { return p.Truth }},
		{"estimate", `stroke="#0072b2" stroke-dasharray="5 3"`,
			func(p TrafficPoint) int64 { return p.Estimate }},
	} {
		d.print("<polyline fill=\"none\" %s points=\"", line.style)
		for _, p := range curve {
			if p.At > end {
				break
			}
			d.print("%.1f,%.1f ", x(p.At), y(line.units(p)))
		}
		d.print("\"/>\n")
		legend := d.y + 40 + float64(20*i)
		d.print("<path d=\"M%d %.1fh24\" %s/>\n", plotRight+12, legend, line.style)
		d.text(plotRight+42, legend+4, "start", line.name)
	}
	d.y += plotHeight + 8
}
