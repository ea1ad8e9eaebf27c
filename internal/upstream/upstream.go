// Package upstream puts the YouTube API behind the gate.
package upstream

import (
	"fmt"
	"log/slog"
	"net/http"

	"quotabudget/internal/costs"
	"quotabudget/internal/endpoint"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
)

// Gate is a meter.Transport for the upstream at address: requests are named and priced by the
// table, and an answer that says the day's quota is gone suspends the bucket. key reads the API key
// when a request is made.
func Gate(address string, table *costs.Table, budget *quota.Budget, key func() (string, error),
	log *slog.Logger) (*meter.Transport, error) {
	u, err := endpoint.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("youtube endpoint: %w", err)
	}
	return &meter.Transport{
		Base: meter.NewBase(), Budget: budget, Scheme: u.Scheme, Host: u.Host, Method: table.Method,
		Session: table.Session,
		Key:     key, Learn: lessons(table, log), Log: log,
	}, nil
}

// lessons says what the upstream's errors teach about its buckets, by the refusals of the price list.
// A metric that is none of them closes none: it says nothing about the bucket that our price list
// took the units from.
func lessons(table *costs.Table, log *slog.Logger) func(status int,
	body []byte) (meter.Lesson, bool) {
	return func(status int, body []byte) (meter.Lesson, bool) {
		said := table.Refusal(status, http.Header{}, body)
		switch {
		case said == nil || said.Kind != costs.Exhausted:
			return meter.Lesson{}, false
		case said.Bucket == "" && said.Metric != "":
			log.Warn("the upstream reports an exhausted quota that the price list lacks",
				"metric", said.Metric)
			return meter.Lesson{}, false
		case said.Bucket == "":
			return meter.Lesson{Reset: table.Reset(table.Buckets()[0].Name)}, true
		}
		return meter.Lesson{Bucket: said.Bucket, Reset: table.Reset(said.Bucket)}, true
	}
}
