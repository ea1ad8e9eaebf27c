// Package upstream puts the YouTube API behind the gate.
package upstream

import (
	"fmt"
	"log/slog"

	"quotabudget/internal/costs"
	"quotabudget/internal/endpoint"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/youtube/fault"
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

// lessons says what the upstream's errors teach about its buckets. A metric that is none of them
// closes none: it says nothing about the bucket that our price list took the units from.
func lessons(table *costs.Table, log *slog.Logger) func(status int,
	body []byte) (meter.Lesson, bool) {
	return func(status int, body []byte) (meter.Lesson, bool) {
		said := fault.Classify(status, body)
		if said.Kind != fault.Exhausted {
			return meter.Lesson{}, false
		}
		if said.Metric == "" {
			return meter.Lesson{Reset: table.Buckets()[0].Reset}, true
		}
		bucket, ok := table.BucketOfMetric(said.Metric)
		if !ok {
			log.Warn("the upstream reports an exhausted quota that the price list lacks",
				"metric", said.Metric)
		}
		return meter.Lesson{Bucket: bucket.Name, Reset: bucket.Reset}, ok
	}
}
