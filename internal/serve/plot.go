package serve

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/report"
)

// plot is a picture of values over time, drawn on the server. Lines and areas have their own
// coordinates, plotWidth wide, which are stretched to the available width. Texts and dots are
// placed by percentages, so that they keep their size.
type plot struct {
	ID, Name, Text string // Text describes the plot
	Last           string // the last value, in words
	From, To       time.Time
	Height         int // of the lines, in pixels
	Rows, Columns  []tick
	Shapes         []shape
	Dots           []dot
	Bars           []shape // areas of the whole height
	Marks          []tick  // moments, with a word each

	low, high float64
}

type point struct {
	at    time.Time
	value float64
}

// tick is a line of the grid and its label.
type tick struct {
	At     string // y in pixels, or x in percent
	Label  string
	Anchor string
}

// shape is a line or an area. The style sheet has its kind.
type shape struct{ Kind, Path string }

type dot struct{ X, Y string }

const plotWidth = 1000

// Full returns the height with the labels of the columns.
func (p *plot) Full() int { return p.Height + 22 }

// fit sets the range of values by a line, and the grid.
func (p *plot) fit(line []point) {
	low, high := line[0].value, line[0].value
	for _, one := range line {
		low, high = min(low, one.value), max(high, one.value)
	}
	if margin := (high - low) / 10; margin > 0 {
		p.between(max(0, low-margin), high+margin)
	} else {
		p.between(max(0, high/2), max(high*1.5, 1))
	}
}

// between sets the range of values, and the grid.
func (p *plot) between(low, high float64) {
	p.low, p.high = low, max(high, low+1)
	p.grid()
}

func (p *plot) grid() {
	if p.To.Sub(p.From) < time.Minute { // center a single moment
		p.From, p.To = p.From.Add(-30*time.Second), p.To.Add(30*time.Second)
	}
	step := niceStep((p.high - p.low) / 3)
	for v := math.Ceil(p.low/step) * step; v <= p.high; v += step {
		if p.low > 0 && v < p.low+(p.high-p.low)/12 {
			continue // its label would overlap those of the columns
		}
		p.Rows = append(p.Rows, tick{At: fmt.Sprintf("%.1f", p.y(v)), Label: short(int64(v))})
	}
	apart, form := timeStep(p.To.Sub(p.From))
	for at := p.From.UTC().Truncate(apart); !at.After(p.To); at = at.Add(apart) {
		x, anchor := p.x(at)/plotWidth*100, "middle"
		switch {
		case x < 0:
			continue
		case x < 5:
			anchor = "start"
		case x > 95:
			anchor = "end"
		}
		label := at.Format(form)
		if form == "15:04" && label == "00:00" {
			label = at.Format("2 Jan")
		}
		p.Columns = append(p.Columns, tick{percentText(x), label, anchor})
	}
}

// niceStep returns the next larger of 1, 2 and 5 times a power of ten, at least 1.
func niceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(max(least, 1))))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= least {
			return n * power
		}
	}
	return 10 * power
}

// timeStep returns the distance and the format of at most six columns of the grid.
func timeStep(d time.Duration) (time.Duration, string) {
	const day = 24 * time.Hour
	for _, step := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute,
		30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour} {
		if d <= 5*step {
			return step, "15:04"
		}
	}
	for _, step := range []time.Duration{day, 2 * day, 7 * day, 14 * day, 28 * day, 91 * day} {
		if d <= 5*step {
			return step, "2 Jan"
		}
	}
	return max(365*day, (d / 4).Truncate(day)), "Jan 2006"
}

func (p *plot) x(at time.Time) float64 {
	return float64(at.Sub(p.From)) / float64(p.To.Sub(p.From)) * plotWidth
}

func (p *plot) y(value float64) float64 {
	const above = 14 // for the label of the highest line
	part := (value - p.low) / (p.high - p.low)
	return float64(p.Height) - part*float64(p.Height-above)
}

func percentText(x float64) string { return fmt.Sprintf("%.2f%%", x) }

// path returns the path along some points.
func (p *plot) path(points []point) string {
	var b strings.Builder
	for i, one := range points {
		step := 'L'
		if i == 0 {
			step = 'M'
		}
		fmt.Fprintf(&b, "%c%.1f %.1f", step, p.x(one.at), p.y(one.value))
	}
	return b.String()
}

func (p *plot) line(kind string, points []point) {
	p.Shapes = append(p.Shapes, shape{"line " + kind, p.path(points)})
}

// area fills the area below a line.
func (p *plot) area(points []point) {
	first, last := points[0].at, points[len(points)-1].at
	p.band("area", points, []point{{first, p.low}, {last, p.low}})
}

// band fills the area between two lines.
func (p *plot) band(kind string, upper, lower []point) {
	around := slices.Clone(upper)
	for _, one := range slices.Backward(lower) {
		around = append(around, one)
	}
	p.Shapes = append(p.Shapes, shape{kind, p.path(around) + "Z"})
}

// bar fills the whole height between two moments.
func (p *plot) bar(kind string, from, to time.Time) {
	left, right := max(0, p.x(from)), min(plotWidth, p.x(to))
	if left < right {
		p.Bars = append(p.Bars, shape{kind,
			fmt.Sprintf("M%.1f 0H%.1fV%dH%.1fZ", left, right, p.Height, left)})
	}
}

func (p *plot) dot(at point) {
	p.Dots = append(p.Dots, dot{percentText(p.x(at.at) / plotWidth * 100),
		fmt.Sprintf("%.1f", p.y(at.value))})
}

// mark draws a line at a moment, with a word.
func (p *plot) mark(at time.Time, word string) {
	x := p.x(at) / plotWidth * 100
	anchor := "start"
	if x > 50 {
		anchor = "end"
	}
	p.Marks = append(p.Marks, tick{percentText(x), word, anchor})
}

// maxDetailed is the length of a plan beyond which its picture shows only the peak of each day,
// because shorter ups and downs would blur.
const maxDetailed = 60 * 24 * time.Hour

// pictureMargin is the space around a picture, and pictureHead the space above each of its plots,
// in pixels.
const pictureMargin, pictureHead = 20, 30

// DrawPlan writes an SVG picture of the use of each limit in a plan. It marks the hours in which a
// run gets fewer pages than it wants.
func DrawPlan(w io.Writer, planned report.Planned) error {
	body := newPlan(planned)
	out := struct {
		Title         string
		Width, Height int
		Plots         []planPlot
	}{Title: "Units used, of those for scheduled charges", Width: plotWidth + 2*pictureMargin,
		Height: 2 * pictureHead, Plots: body.Plots}
	if planned.Report.To.Sub(planned.Report.From) > maxDetailed {
		out.Title += ": the peak of each day"
	}
	for i := range out.Plots {
		p := &out.Plots[i]
		p.Y = out.Height
		for _, hour := range planned.LostHours {
			p.bar("lost", hour, hour.Add(time.Hour))
		}
		out.Height += pictureHead + p.Full()
	}
	picture := template.Must(template.New("picture.svg").Funcs(functions).ParseFS(templateFiles,
		"templates/picture.svg", "templates/parts.html"))
	return picture.Execute(w, out)
}

// Caption names the limit that is drawn.
func (p planPlot) Caption() string {
	return p.Limit.Name() + ", of " + strconv.FormatInt(p.Cap, 10)
}
