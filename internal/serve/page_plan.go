package serve

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"quotabudget/internal/plan"
	"quotabudget/internal/report"
)

// planBody holds the planned spending of the schedule.
type planBody struct {
	report.Planned
	Spans    []choice
	Headline string
	Plots    []planPlot
	Lost     []plan.Run // the first lost runs
	More     int
}

type planPlot struct {
	plan.Use
	*plot
	Y int // top in a picture, in px
}

const (
	maxDays = 7
	maxLost = 50
	// planFor is the time for which a plan is cached.
	planFor = 30 * time.Second
)

func (p *site) plan(ctx context.Context, r *http.Request, now time.Time) (page, error) {
	if err := p.mayRead(r); err != nil {
		return page{}, err
	}
	days, text := 1, r.FormValue("days")
	if text != "" {
		var err error
		if days, err = strconv.Atoi(text); err != nil || days < 1 || days > maxDays {
			return page{}, badRequest("days: write a number from 1 to %d", maxDays)
		}
	}
	planned, err := p.plans[days-1].get(ctx, planFor, func(ctx context.Context) (report.Planned,
		error) {
		return p.Source().Plan(ctx, report.PlanQuery{Days: days})
	})
	if err != nil {
		return page{}, err
	}
	body := newPlan(planned)
	body.Spans, _ = choices(strconv.Itoa(days), "1", "to the reset", "2", "2 days", "3", "3 days",
		"7", "7 days")
	return page{Title: "Plan", Section: "plan", Live: true, Body: body}, nil
}

func newPlan(planned report.Planned) *planBody {
	body := &planBody{Planned: planned, Headline: "Every run gets its pages"}
	r := &planned.Report
	if lostRuns := r.Lost(); lostRuns > 0 {
		body.Headline = count(lostRuns) + " of " + times(r.Runs, "run") + " lose pages"
	}
	body.Lost = planned.Lost[:min(len(planned.Lost), maxLost)]
	body.More = len(planned.Lost) - len(body.Lost) + planned.More
	for i, use := range r.Windows {
		if i >= len(r.Series) || use.Cap == 0 {
			continue
		}
		body.Plots = append(body.Plots, planPlot{use, usePlot(i, r, r.Series[i], use), 0})
	}
	return body
}

func usePlot(i int, r *plan.Report, s plan.Series, use plan.Use) *plot {
	p := &plot{ID: "use-" + strconv.Itoa(i), Name: use.Limit.Name() + ": units used", From: r.From,
		To: r.To, Height: 150}
	high := max(use.Cap, use.Peak)
	if use.Peak < use.Cap/5 { // the line would coincide with the axis
		high = use.Peak * 3 / 2
	}
	p.between(0, float64(high))
	var line []point
	length := time.Duration(len(s.Use)) * s.Step
	points := min(len(s.Use), plotWidth)
	if length > maxDetailed {
		points = int(length / (24 * time.Hour))
	}
	peaks := report.Peaks(s.Use, points)
	for n, used := range peaks {
		line = append(line, point{s.Start.Add(length * time.Duration(n) / time.Duration(len(peaks))),
			used})
	}
	p.Text = "at most " + count(use.Peak) + " of " + times(use.Cap, "unit") + " are used at once"
	if use.Peak > 0 {
		p.Text += ", at " + moment(use.At)
	}
	if len(line) > 1 {
		p.area(line)
		p.line("main", line)
	}
	if float64(use.Cap) <= p.high {
		p.line("even", []point{{r.From, float64(use.Cap)}, {r.To, float64(use.Cap)}})
	}
	return p
}
