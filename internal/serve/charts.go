package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
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
