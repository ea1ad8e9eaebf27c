package main

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/plan"
)

// maxPoints is the maximum of a curve, unless it has one per day.
const maxPoints = 1500

// aDay is the length of a plan from which a curve shows the peak of each day, because shorter ups
// and downs would blur.
const aDay = 60 * 24 * time.Hour

// Sizes of the picture in px. Labels take up to 0.6 em a letter in any font.
const (
	svgLeft, svgRight, svgTop = 60, 960, 50 // edges of the area inside the axes
	svgHeight                 = 360         // of that area
	svgFull                   = 110.0       // per cent at the upper edge of the area
	svgBelow                  = 20          // from the lower edge of the area to the legend
	svgLine                   = 20          // height of a line of the legend
)

// writeSVG draws the use of each limit, in per cent of its units for scheduled charges, and a mark
// for each hour in which a run gets less than it wants. In a long plan, curves and marks are by
// day.
func writeSVG(w io.Writer, series []plan.Series, lost []time.Time) error {
	series = slices.DeleteFunc(slices.Clone(series), func(s plan.Series) bool {
		return s.Limit.Pace != nil || len(s.Use) == 0
	})
	title := "Units used, of those for scheduled charges"
	if slices.ContainsFunc(series, drawsDays) {
		title += ": the peak of each day"
		lost = slices.CompactFunc(slices.Clone(lost), func(a, b time.Time) bool {
			return a.Truncate(24 * time.Hour).Equal(b.Truncate(24 * time.Hour))
		})
	}
	c := svgChart{from: time.Unix(0, 0), to: time.Unix(1, 0)}
	if len(series) > 0 {
		c.from, c.to = series[0].Start, endOf(series[0]) // all cover the same time
	}
	c.head(title, len(series)+1)
	c.axes()
	for i, s := range series {
		c.curve(i, s)
	}
	c.marks(len(series), lost)
	c.print("</svg>\n")
	_, err := io.WriteString(w, c.out.String())
	return err
}

// drawsDays reports whether a curve has one point per day.
func drawsDays(s plan.Series) bool { return endOf(s).Sub(s.Start) > aDay }

// peaks returns the points of a curve, evenly spread.
func peaks(s plan.Series) []float64 {
	if !drawsDays(s) {
		return spread(s.Use, min(len(s.Use), maxPoints))
	}
	days := make([]float64, endOf(s).Sub(s.Start)/(24*time.Hour))
	for i, u := range s.Use {
		day := min(int(time.Duration(i)*s.Step/(24*time.Hour)), len(days)-1)
		days[day] = max(days[day], float64(u))
	}
	return days
}

// svgChart is the picture while it is drawn.
type svgChart struct {
	out      strings.Builder
	from, to time.Time
}

func (c *svgChart) print(format string, args ...any) { fmt.Fprintf(&c.out, format, args...) }

// text writes a text on line y with its anchor (start, middle or end) at x.
func (c *svgChart) text(x, y float64, anchor, text string) {
	c.print("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
		html.EscapeString(text))
}

func (c *svgChart) head(title string, entries int) {
	c.print(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`font-family="sans-serif" font-size="12">`+"\n",
		svgRight+svgLeft, svgTop+svgHeight+svgBelow+entries*svgLine+10)
	c.print(`<rect width="100%%" height="100%%" fill="white"/>` + "\n")
	c.text((svgLeft+svgRight)/2, svgTop-20, "middle", title)
}

// x returns the position of a moment.
func (c *svgChart) x(at time.Time) float64 {
	return svgLeft + (svgRight-svgLeft)*at.Sub(c.from).Seconds()/c.to.Sub(c.from).Seconds()
}

func (c *svgChart) y(percent float64) float64 {
	return svgTop + svgHeight*(1-min(percent, svgFull)/svgFull)
}

// axes draws the grid, with labels at every half and at full hours or days.
func (c *svgChart) axes() {
	var grid strings.Builder
	for percent := 0; percent <= 100; percent += 10 {
		y := c.y(float64(percent))
		fmt.Fprintf(&grid, "M%d %.1fH%d", svgLeft, y, svgRight)
		if percent%50 == 0 {
			c.text(svgLeft-8, y+4, "end", fmt.Sprintf("%d %%", percent))
		}
	}
	for _, t := range svgTicks(c.from, c.to) {
		x := c.x(t.at)
		fmt.Fprintf(&grid, "M%.1f %dV%d", x, svgTop, svgTop+svgHeight)
		c.text(x, svgTop+svgHeight+18, "middle", t.label)
	}
	c.print("<path d=\"%s\" stroke=\"#ddd\"/>\n", &grid)
	c.print("<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"black\"/>\n", svgLeft, svgTop,
		svgTop+svgHeight, svgRight)
}

// curve draws one limit and its line of the legend. Each curve has different dashes, because
// curves may coincide.
func (c *svgChart) curve(i int, s plan.Series) {
	colors := []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"}
	dashes := []string{"none", "7 3", "2 3", "9 3 2 3", "4 2", "12 4"}
	style := fmt.Sprintf(`fill="none" stroke="%s" stroke-width="1.5" stroke-dasharray="%s"`,
		colors[i%len(colors)], dashes[i%len(dashes)])
	use := peaks(s)
	step := endOf(s).Sub(s.Start) / time.Duration(len(use))
	c.print("<polyline %s points=\"", style)
	for i, u := range use {
		percent := 100 * u / float64(max(1, s.Cap))
		c.print("%.1f,%.1f ", c.x(s.Start.Add(time.Duration(i)*step)), c.y(percent))
	}
	c.print("\"/>\n")
	y := c.entry(i, fmt.Sprintf("%s, of %d", s.Limit.Name(), s.Cap))
	c.print("<path d=\"M%d %.1fh30\" %s/>\n", svgLeft, y, style)
}

func (c *svgChart) marks(i int, lost []time.Time) {
	if len(lost) == 0 {
		return
	}
	y := c.entry(i, "runs that get less than they want")
	crosses := cross(svgLeft+15, y)
	for _, at := range lost {
		crosses += cross(c.x(at), c.y(104))
	}
	c.print("<path d=\"%s\" stroke=\"#c80000\"/>\n", crosses)
}

func cross(x, y float64) string {
	return fmt.Sprintf("M%.1f %.1fl6 6m-6 0l6 -6", x-3, y-3)
}

// entry writes a line of the legend, and returns its vertical middle.
func (c *svgChart) entry(i int, text string) float64 {
	y := float64(svgTop + svgHeight + svgBelow + (i+1)*svgLine)
	c.text(svgLeft+40, y, "start", text)
	return y - 4
}

// svgTick is a vertical line of the grid and its label.
type svgTick struct {
	at    time.Time
	label string
}

const maxTicks = 9

// svgTicks returns the ticks, at full hours or days of UTC.
func svgTicks(from, to time.Time) (found []svgTick) {
	const day = 24 * time.Hour
	var step time.Duration
	for _, step = range []time.Duration{time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
		day, 2 * day, 7 * day, 14 * day, 30 * day, 60 * day, 365 * day} {
		if to.Sub(from)/step < maxTicks {
			break
		}
	}
	form := "2006-01-02"
	if step < day {
		form = "01-02 15:04Z"
	}
	seconds := int64(step / time.Second)
	for at := (from.Unix() + seconds - 1) / seconds * seconds; at <= to.Unix(); at += seconds {
		moment := time.Unix(at, 0).UTC()
		found = append(found, svgTick{moment, moment.Format(form)})
	}
	return found
}
