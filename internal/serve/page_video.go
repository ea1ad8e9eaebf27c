package serve

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"quotabudget/internal/catalog"
)

// videoBody is a video with its plots.
type videoBody struct {
	catalog.History
	Plots []*plot
}

// Upstream returns the video's address at the upstream.
func (b videoBody) Upstream() string {
	return "https://www.youtube.com/watch?v=" + url.QueryEscape(b.ID)
}

// Renamed reports whether the video ever had another name.
func (b videoBody) Renamed() bool { return len(b.Names) > 1 }

func (p *site) video(ctx context.Context, r *http.Request, now time.Time) (page, error) {
	id := r.PathValue("id")
	history, err := p.Catalog.Video(ctx, id)
	if errors.Is(err, catalog.ErrNotFound) {
		return page{}, notFound("there is no video with that id in the catalogue")
	}
	if err != nil {
		return page{}, err
	}
	body := videoBody{History: history}
	for _, c := range []struct {
		name  string
		value func(catalog.Counters) *int64
	}{
		{"Views", func(c catalog.Counters) *int64 { return c.Views }},
		{"Likes", func(c catalog.Counters) *int64 { return c.Likes }},
		{"Comments", func(c catalog.Counters) *int64 { return c.Comments }},
	} {
		body.Plots = append(body.Plots, counterPlot(c.name, &history, c.value))
	}
	return page{Title: title(history.Title), Section: "charts", Live: true, Body: body}, nil
}

// counterPlot draws a counter from the first fetch of the video to the last one.
func counterPlot(name string, h *catalog.History, value func(catalog.Counters) *int64) *plot {
	var line []point
	for _, c := range h.Counters {
		if n := value(c); n != nil {
			line = append(line, point{c.At, float64(*n)})
		}
	}
	p := &plot{ID: "plot-" + strings.ToLower(name), Name: name, Height: 150,
		From: h.FirstSeenAt, To: h.FetchedAt}
	if len(line) == 0 {
		p.Text = "the upstream does not say"
		return p
	}
	first, last := line[0], line[len(line)-1]
	if h.FetchedAt.After(last.at) { // unchanged at the last fetch
		line = append(line, point{h.FetchedAt, last.value})
	}
	p.Text = "from " + count(int64(first.value)) + " on " + moment(first.at) + " to " +
		count(int64(last.value)) + " on " + moment(h.FetchedAt)
	p.Last = short(int64(last.value))
	p.fit(line)
	p.area(line)
	p.line("main", line)
	p.dot(line[len(line)-1])
	return p
}
