package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"quotabudget/internal/catalog"
	"quotabudget/internal/regions"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

// RegionInput names a region.
type RegionInput struct {
	Region string `path:"region" maxLength:"20" doc:"ISO 3166-1 alpha-2" example:"US"`
}

func (in RegionInput) code() (string, error) {
	region, err := regions.Parse(in.Region)
	if err != nil {
		return "", huma.Error400BadRequest(err.Error())
	}
	return string(region), nil
}

func (s *Server) regions(ctx context.Context, _ *struct{}) (*output[list[report.Region]], error) {
	states, err := s.regionStates(ctx)
	return newList(5, states, report.NewRegion), err
}

type chartInput struct {
	RegionInput
	At    time.Time `query:"at" doc:"the chart that was current then; now if left out"`
	Limit int       `query:"limit" minimum:"1" maximum:"1000" default:"1000"`
}

func (s *Server) chart(ctx context.Context, in *chartInput) (*output[report.Chart], error) {
	region, err := in.code()
	if err != nil {
		return nil, err
	}
	chart, videos, err := s.Catalog.At(ctx, region, cmp.Or(in.At, time.Now()), in.Limit)
	if err != nil {
		return nil, err
	}
	return dated(chart.CompletedAt, report.NewChart(chart, videos)), nil
}

// dated returns a response whose data was last modified at a time.
func dated[T any](at time.Time, body T) *output[T] {
	return &output[T]{CacheControl: maxAge(time.Since(at)),
		LastModified: at.UTC().Format(http.TimeFormat), Body: body}
}

// maxAge returns how long caches may keep a chart: a tenth of its age (RFC 9111, 4.2.2), between
// five seconds and five minutes.
func maxAge(age time.Duration) string {
	keep := min(max(age/10, 5*time.Second), 5*time.Minute)
	return fmt.Sprintf("max-age=%d", int(keep.Seconds()))
}

type historyInput struct {
	RegionInput
	Paging
}

type chartItem struct {
	StartedAt   words.Time `json:"started_at"`
	CompletedAt words.Time `json:"completed_at" doc:"as at= this finds the chart"`
	Run         string     `json:"run"`
	Pages       int        `json:"pages"`
	Videos      int        `json:"videos"`
}

func (s *Server) history(ctx context.Context, in *historyInput) (*output[list[chartItem]], error) {
	region, err := in.code()
	if err != nil {
		return nil, err
	}
	before, err := in.start()
	if err != nil {
		return nil, err
	}
	charts, err := s.Catalog.History(ctx, region, catalog.ChartID(before), in.Limit+1)
	show := func(c catalog.Chart) chartItem {
		return chartItem{words.Time(c.StartedAt), words.Time(c.CompletedAt), c.Run, c.Pages,
			c.Videos}
	}
	after := func(c catalog.Chart) int64 { return int64(c.ID) }
	return newPage(5, charts, in.Limit, show, after), err
}

type changesInput struct {
	RegionInput
	From time.Time `query:"from" doc:"the chart that was current then; if left out, the one before to"`
	To   time.Time `query:"to" doc:"the chart that was current then; now if left out"`
}

func (s *Server) changes(ctx context.Context, in *changesInput) (*output[report.Changes], error) {
	region, err := in.code()
	if err != nil {
		return nil, err
	}
	newer, after, err := s.Catalog.At(ctx, region, cmp.Or(in.To, time.Now()), 0)
	if err != nil {
		return nil, err
	}
	from := cmp.Or(in.From, newer.CompletedAt.Add(-time.Microsecond))
	older, before, err := s.Catalog.At(ctx, region, from, 0)
	if in.From.IsZero() && errors.Is(err, catalog.ErrNotFound) {
		return nil, huma.Error404NotFound("the first chart of " + region +
			" has none before it to compare it with")
	}
	if err != nil {
		return nil, err
	}
	return dated(newer.CompletedAt, report.NewChanges(older, before, newer, after)), nil
}

type videoInput struct {
	ID string `path:"id" maxLength:"64" doc:"as the upstream has it"`
}

func (s *Server) video(ctx context.Context, in *videoInput) (*output[report.History], error) {
	h, err := s.Catalog.Video(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return dated(h.FetchedAt, report.NewHistory(h)), nil
}

// maxResults bounds how far a search can be paged through.
const maxResults = 500

type searchInput struct {
	Query string `query:"q" required:"true" minLength:"1" maxLength:"200"`
	Paging
}

func (s *Server) search(ctx context.Context, in *searchInput) (*output[list[report.Video]], error) {
	if strings.TrimSpace(in.Query) == "" {
		return nil, huma.Error400BadRequest("q: write words to search for")
	}
	skip, err := in.start()
	if err != nil {
		return nil, err
	}
	if skip >= maxResults {
		return nil, huma.Error400BadRequest("cursor: a search shows 500 videos at most: " +
			"add a word to q")
	}
	matches, err := s.Catalog.Search(ctx, in.Query, int(skip),
		min(in.Limit+1, maxResults-int(skip)))
	show := func(v catalog.Seen) report.Video { return report.NewVideo(v, 0) }
	after := func(catalog.Seen) int64 { return skip + int64(in.Limit) }
	return newPage(30, matches, in.Limit, show, after), err
}

type sweep struct {
	Run       string     `json:"run"`
	StartedAt words.Time `json:"started_at"`
	EndedAt   words.Time `json:"ended_at" doc:"when its newest page was fetched"`
	Charts    int        `json:"charts" doc:"charts that the run began"`
	Complete  int        `json:"complete" doc:"charts of these that are complete"`
	Pages     int        `json:"pages"`
	Videos    int        `json:"videos"`
}

func (s *Server) sweeps(ctx context.Context, in *Paging) (*output[list[sweep]], error) {
	start, err := in.start()
	if err != nil {
		return nil, err
	}
	var before time.Time
	if start > 0 {
		before = time.UnixMicro(start)
	}
	runs, err := s.Catalog.Runs(ctx, before, in.Limit+1)
	show := func(r catalog.Run) sweep {
		return sweep{r.ID, words.Time(r.StartedAt), words.Time(r.EndedAt), r.Charts, r.Complete,
			r.Pages, r.Videos}
	}
	after := func(r catalog.Run) int64 { return r.StartedAt.UnixMicro() }
	return newPage(5, runs, in.Limit, show, after), err
}
