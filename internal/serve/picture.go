package serve

import (
	"html/template"
	"io"
	"strconv"
	"time"

	"quotabudget/internal/report"
)

// aDay is the length of a plan from which its picture shows the peak of each day, because shorter
// ups and downs would blur.
const aDay = 60 * 24 * time.Hour

// pictureMargin is the space around a picture, and pictureHead that above each of its plots, in px.
const pictureMargin, pictureHead = 20, 30

// DrawPlan writes the use of each limit in a plan as a picture in SVG, with the hours in which a
// run gets less than it wants.
func DrawPlan(w io.Writer, planned report.Planned) error {
	body := newPlan(planned)
	out := struct {
		Title         string
		Width, Height int
		Plots         []planPlot
	}{Title: "Units used, of those for scheduled charges", Width: plotWidth + 2*pictureMargin,
		Height: 2 * pictureHead, Plots: body.Plots}
	if planned.Report.To.Sub(planned.Report.From) > aDay {
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

// points returns the number of points that a curve of so many steps has.
func points(steps int, length time.Duration) int {
	if length > aDay {
		return int(length / (24 * time.Hour))
	}
	return min(steps, plotWidth)
}

// Caption names the limit that is drawn.
func (p planPlot) Caption() string {
	return p.Limit.Name() + ", of " + strconv.FormatInt(p.Cap, 10)
}
