package serve

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"quotabudget/internal/config"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

func (s *Server) status(ctx context.Context, _ *struct{}) (*output[report.Status], error) {
	status, err := s.Source().Status(ctx)
	return &output[report.Status]{Body: status}, err
}

type forecastInput struct {
	Bucket string `query:"bucket" maxLength:"64" doc:"only this bucket; all if left out"`
}

func (s *Server) forecast(ctx context.Context,
	in *forecastInput) (*output[report.ForecastList], error) {
	forecasts, err := s.Source().Forecasts(ctx, in.Bucket)
	return &output[report.ForecastList]{Body: report.NewForecastList(forecasts)}, err
}

type planInput struct {
	Days int `query:"days" minimum:"1" maximum:"31" default:"1" doc:"upstream days"`
}

func (s *Server) plan(ctx context.Context, in *planInput) (*output[report.Plan], error) {
	planned, err := s.Source().Plan(ctx, report.PlanQuery{Days: in.Days})
	return &output[report.Plan]{Body: report.NewPlan(planned)}, err
}

// LogInput selects entries of the log.
type LogInput struct {
	Credential string `query:"credential" maxLength:"64" doc:"if left out, the one that ingest uses"`
	Bucket     string `query:"bucket" maxLength:"128" doc:"or a part: output/small; all if left out"`
}

// logBuckets returns the buckets of a credential that may have a log.
func logBuckets(cfg *config.Config, cred config.Credential) []string {
	return report.LogBuckets(cfg, cred, cred.Budget(nil, cfg.Table(cred), nil).Buckets())
}

// log returns the requested credential and buckets.
func (in LogInput) log(cfg *config.Config) (config.Credential, []string, error) {
	name := in.Credential
	if name == "" {
		name = cfg.Ingest.Credential
	}
	cred, err := cfg.Credential(name)
	if err != nil {
		return cred, nil, huma.Error400BadRequest("credential: " + err.Error())
	}
	buckets := logBuckets(cfg, cred)
	if in.Bucket == "" {
		return cred, buckets, nil
	}
	if !slices.Contains(buckets, quota.WholeOf(in.Bucket)) {
		return cred, nil, huma.Error404NotFound("no such bucket: there are " +
			strings.Join(buckets, ", "))
	}
	return cred, []string{in.Bucket}, nil
}

type groupInput struct {
	LogInput
	By    string    `query:"by" default:"method" doc:"method, region, job, source or label:NAME"`
	Since time.Time `query:"since" doc:"only charges after this time; if left out, all that are kept"`
}

func (s *Server) log(ctx context.Context, in *groupInput) (*output[report.Groups], error) {
	label, err := report.LabelOf(in.By)
	if err != nil || !quota.IsSummed(label) {
		return nil, huma.Error400BadRequest("by: write method, region, job, source or label:NAME")
	}
	src := s.Source()
	cred, buckets, err := in.log(src.Config)
	if err != nil {
		return nil, err
	}
	sums, err := src.Spent(ctx, cred.Name, buckets, report.Span{Since: in.Since}, label)
	return &output[report.Groups]{Body: sums.Groups(in.By)}, err
}

type entriesInput struct {
	LogInput
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}

func (s *Server) entries(ctx context.Context,
	in *entriesInput) (*output[list[report.Entry]], error) {
	src := s.Source()
	cred, buckets, err := in.log(src.Config)
	if err != nil {
		return nil, err
	}
	all, err := src.Newest(ctx, cred.Name, buckets, time.Time{}, in.Limit)
	return newList(0, all, report.NewEntry), err
}
