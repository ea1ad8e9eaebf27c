// Package bill compares the ledger with the upstream's own count and limits.
//
// The count is in Cloud Monitoring and the limits are in Service Usage. The generated clients of the
// two APIs, with gRPC and OpenTelemetry, would enlarge the program by half. The tests compare this
// package with them.
package bill

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"quotabudget/internal/untrusted"
)

// Client reads the data of one API of one project. Its fields are set before use.
type Client struct {
	Account  *Account
	Project  string // "" for the account's project
	Service  string // the API: youtube.googleapis.com
	Endpoint string // base URL ending in a slash for all requests; "" for Google

	http *http.Client
}

const (
	cloudMonitoring = "Cloud Monitoring"
	serviceUsage    = "Service Usage"
)

// ProjectName returns the ID of the project, or "" if it is not known.
func (c *Client) ProjectName() string { return cmp.Or(c.Project, c.Account.Project) }

// Usage returns the units of each metric counted after from and up to until, both in whole
// seconds. A metric without data is missing, whether nothing was used or nothing is known yet.
// The error is an *Error or that of ctx.
func (c *Client) Usage(ctx context.Context, from, until time.Time) (map[string]int64, error) {
	query := url.Values{
		"filter": {fmt.Sprintf(`metric.type="serviceruntime.googleapis.com/quota/rate/net_usage"`+
			` AND resource.type="consumer_quota" AND resource.label.service=%q`, c.Service)},
		"interval.startTime":             {from.UTC().Format(time.RFC3339)},
		"interval.endTime":               {until.UTC().Format(time.RFC3339)},
		"aggregation.alignmentPeriod":    {fmt.Sprintf("%ds", int64(until.Sub(from).Seconds()))},
		"aggregation.perSeriesAligner":   {"ALIGN_SUM"},
		"aggregation.crossSeriesReducer": {"REDUCE_SUM"},
		"aggregation.groupByFields":      {"metric.label.quota_metric"},
	}
	used := make(map[string]int64)
	path := "v3/projects/" + url.PathEscape(c.ProjectName()) + "/timeSeries"
	err := c.pages(ctx, cloudMonitoring, path, query, func(page []byte) (string, error) {
		return addUsage(page, used)
	})
	return used, err
}

func addUsage(page []byte, used map[string]int64) (next string, err error) {
	var answer struct {
		Series []struct {
			Metric struct {
				Labels map[string]string `json:"labels"`
			} `json:"metric"`
			Points []struct {
				Value struct {
					Int64 int64 `json:"int64Value,string"`
				} `json:"value"`
			} `json:"points"`
		} `json:"timeSeries"`
		Next string `json:"nextPageToken"`
	}
	if err := json.Unmarshal(page, &answer); err != nil {
		return "", err
	}
	for _, series := range answer.Series {
		for _, p := range series.Points {
			used[series.Metric.Labels["quota_metric"]] += p.Value.Int64
		}
	}
	return answer.Next, nil
}

// Limit is a project's limit of a metric.
type Limit struct {
	Metric string // youtube.googleapis.com/default
	Unit   string // 1/d/{project}, 1/min/{project}/{user}
	Units  int64  // -1 for unlimited
}

// Limits returns the limits of the API, without those of a single location. The error is an
// *Error or that of ctx.
func (c *Client) Limits(ctx context.Context) ([]Limit, error) {
	var limits []Limit
	path := "v1beta1/projects/" + url.PathEscape(c.ProjectName()) + "/services/" +
		url.PathEscape(c.Service) + "/consumerQuotaMetrics"
	err := c.pages(ctx, serviceUsage, path, url.Values{}, func(page []byte) (string, error) {
		next, some, err := parseLimits(page)
		limits = append(limits, some...)
		return next, err
	})
	return limits, err
}

func parseLimits(page []byte) (next string, limits []Limit, err error) {
	var answer struct {
		Metrics []struct {
			Metric string `json:"metric"`
			Limits []struct {
				Unit    string `json:"unit"`
				Buckets []struct {
					Effective  int64             `json:"effectiveLimit,string"`
					Dimensions map[string]string `json:"dimensions"`
				} `json:"quotaBuckets"`
			} `json:"consumerQuotaLimits"`
		} `json:"metrics"`
		Next string `json:"nextPageToken"`
	}
	if err := json.Unmarshal(page, &answer); err != nil {
		return "", nil, err
	}
	for _, m := range answer.Metrics {
		for _, l := range m.Limits {
			for _, b := range l.Buckets {
				if len(b.Dimensions) == 0 {
					limits = append(limits, Limit{m.Metric, l.Unit, b.Effective})
				}
			}
		}
	}
	return answer.Next, limits, nil
}

// Bounds of the pages to read.
const (
	maxPages = 100
	maxPage  = 8 << 20
)

// pages reads one page after another. read parses each and returns the next page's token.
func (c *Client) pages(ctx context.Context, api, path string, query url.Values,
	read func(page []byte) (next string, err error)) error {
	for range maxPages {
		page, err := c.get(ctx, api, path+"?"+query.Encode())
		if err != nil {
			return err
		}
		next, err := read(page)
		if err != nil {
			return &Error{API: api, Message: "cannot parse its response", Kind: Other}
		}
		if next == "" {
			return nil
		}
		query.Set("pageToken", next)
	}
	return &Error{API: api, Message: fmt.Sprintf("more than %d pages", maxPages), Kind: Other}
}

func (c *Client) get(ctx context.Context, api, path string) ([]byte, error) {
	base := map[string]string{cloudMonitoring: "https://monitoring.googleapis.com/",
		serviceUsage: "https://serviceusage.googleapis.com/"}[api]
	tokenURL := c.Account.tokenURL
	if c.Endpoint != "" {
		base, tokenURL = c.Endpoint, c.Endpoint+"token"
	}
	if c.http == nil {
		c.http = c.Account.client(context.WithoutCancel(ctx), tokenURL)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, away(ctx, api, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxPage+1))
	switch {
	case err != nil:
		return nil, away(ctx, api, err)
	case len(body) > maxPage:
		return nil, &Error{API: api, Message: "its response is too long", Kind: Other}
	case answer.StatusCode != http.StatusOK:
		return nil, refusal(api, answer.StatusCode, body)
	}
	return body, nil
}

// away returns the error of a request that got no response.
func away(ctx context.Context, api string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e := tokenError(err); e != nil {
		return e
	}
	why := err
	if u, ok := err.(*url.Error); ok { // its URL is long and adds nothing
		why = u.Err
	}
	text := strings.TrimPrefix(why.Error(), "oauth2: ")
	return &Error{API: api, Message: untrusted.Plain(text), Kind: Away}
}
