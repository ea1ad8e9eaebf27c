package serve

import (
	"context"
	"errors"
	"net/http"
	"time"

	"quotabudget/internal/catalog"
)

// regionTile is the state of a region and the head of its chart.
type regionTile struct {
	catalog.RegionState
	Outcome string // of the last run
	Grade   string // its style: good, warn, bad or none
	Pages   int    // read by the last run
	Heads   []catalog.Ranked
	Next    time.Time // the next tick; zero if unknown
}

func (p *site) regions(ctx context.Context, r *http.Request, now time.Time) (page, error) {
	tiles, err := p.tiles(ctx, 3)
	return page{Title: "Charts", Section: "charts", Live: true, Body: tiles}, err
}

// tiles returns the configured regions, each with the given number of its first videos.
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

// judge sets the outcome of the region's last run. last has the chart of that run, if any.
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
