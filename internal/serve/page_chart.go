package serve

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/regions"
	"quotabudget/internal/report"
)

// chartBody is a chart of a region, with its differences from the chart before.
type chartBody struct {
	catalog.Chart
	Current bool // the region's current chart
	At      string
	Was     *catalog.Chart // the chart before; nil for none
	Places  []report.Place
	Left    []catalog.Ranked // videos only in the chart before
	Entered int
	Earlier []catalog.Chart
}

func (p *site) chart(ctx context.Context, r *http.Request, now time.Time) (page, error) {
	region, err := regions.Parse(r.PathValue("region"))
	if err != nil {
		return page{}, notFound("%v", err)
	}
	at, text := now, r.FormValue("at")
	if text != "" {
		if at, err = parseMoment(text); err != nil {
			return page{}, err
		}
	}
	body, err := p.chartAt(ctx, string(region), at)
	switch {
	case errors.Is(err, catalog.ErrNotFound) && text == "":
		return page{}, notFound("there is no complete chart of %s yet", region)
	case errors.Is(err, catalog.ErrNotFound):
		return page{}, notFound("there is no complete chart of %s from before %s", region,
			moment(at))
	case err != nil:
		return page{}, err
	}
	body.Current, body.At = text == "", at.UTC().Format("2006-01-02T15:04")
	return page{Title: "Chart of " + string(region), Section: "charts", Live: body.Current,
		Body: body}, nil
}

// parseMoment parses the time in a link or a form, in UTC.
func parseMoment(text string) (time.Time, error) {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04",
		time.DateOnly} {
		if at, err := time.Parse(form, strings.ToUpper(text)); err == nil {
			return at, nil
		}
	}
	return time.Time{}, badRequest("at: write a time in UTC, such as 2026-07-01T09:00")
}

func (p *site) chartAt(ctx context.Context, region string, at time.Time) (*chartBody,
	error) {
	chart, videos, err := p.Catalog.At(ctx, region, at, 0)
	if err != nil {
		return nil, err
	}
	body := &chartBody{Chart: chart}
	if body.Earlier, err = p.Catalog.History(ctx, region, chart.ID, 24); err != nil {
		return nil, err
	}
	var was []catalog.Ranked
	if len(body.Earlier) > 0 {
		body.Was = &body.Earlier[0]
		if _, was, err = p.Catalog.At(ctx, region, body.Was.CompletedAt, 0); err != nil {
			return nil, err
		}
	}
	body.Places, body.Left = report.Compare(was, videos)
	for _, p := range body.Places {
		if p.Was == 0 {
			body.Entered++
		}
	}
	return body, nil
}

// regionTile is the state of a region and the head of its chart.
type regionTile struct {
	catalog.RegionState
	Outcome string // of the last run
	Grade   string // style of the outcome: good, warn, bad or none
	Pages   int    // read by the last run
	Heads   []catalog.Ranked
	Next    time.Time // the next tick; zero if unknown
}

func (p *site) regions(ctx context.Context, r *http.Request, now time.Time) (page, error) {
	tiles, err := p.tiles(ctx, 3)
	return page{Title: "Charts", Section: "charts", Live: true, Body: tiles}, err
}

// tiles returns the configured regions, each with the first videos of its chart, as many as heads.
func (p *site) tiles(ctx context.Context, heads int) ([]regionTile, error) {
	states, err := p.regionStates(ctx)
	if err != nil {
		return nil, err
	}
	tiles := make([]regionTile, len(states))
	for i, state := range states {
		tile := regionTile{RegionState: state}
		last, err := p.Catalog.Charts(ctx, state.Region, 1)
		if err != nil {
			return nil, err
		}
		tile.judge(last)
		if heads > 0 {
			_, tile.Heads, err = p.Catalog.Current(ctx, state.Region, heads)
			if err != nil && !errors.Is(err, catalog.ErrNotFound) {
				return nil, err
			}
		}
		tiles[i] = tile
	}
	return tiles, nil
}

// judge sets the outcome of the region's last run. last contains the chart of that run, if any.
func (t *regionTile) judge(last []catalog.Chart) {
	switch {
	case t.Invalid:
		t.Outcome, t.Grade = "unknown region", "bad"
		return
	case !t.UnavailableAt.IsZero():
		t.Outcome, t.Grade = "no chart", "none"
		return
	case len(last) == 0:
		t.Outcome, t.Grade = "not fetched yet", "none"
		return
	}
	t.Pages = last[0].Pages
	if last[0].CompletedAt.IsZero() {
		t.Outcome, t.Grade = "incomplete", "warn"
		return
	}
	t.Outcome, t.Grade = "complete", "good"
}
