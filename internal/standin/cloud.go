package standin

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Cloud serves the stand-in's metering to service accounts, as Google's Cloud Monitoring and
// Service Usage do. The zero value has no account and refuses all requests.
type Cloud struct {
	// Project is the project's ID; "" matches any.
	Project string
	// Accounts may request tokens.
	Accounts []*ServiceAccount
	// Lag is the delay until metered units show.
	Lag time.Duration
	// Fault is one of CloudFaults, or "".
	Fault string
}

// CloudFaults returns the values of Cloud.Fault: the account lacks the role for usage, or for
// limits; the project has not enabled one of the APIs; a server fails; there are no data; the
// account's key was deleted.
func CloudFaults() []string {
	return []string{"no-usage-role", "no-limits-role", "usage-disabled", "limits-disabled", "503",
		"empty", "key-deleted"}
}

// use is the metered units of one method in one minute, a row of the metric.
type use struct {
	minute         int64 // since 1970
	bucket, method string
}

// cloudKept is how long uses are kept.
const cloudKept = 10 * 24 * time.Hour

// record adds units to the metric. The caller holds the lock.
func (m *youTubeMeter) record(at time.Time, bucket, method string, units int64) {
	minute := at.Unix() / 60
	if m.uses == nil {
		m.uses = map[use]int64{}
	}
	if m.noted != minute && len(m.uses) > 100_000 {
		for u := range m.uses {
			if u.minute < minute-int64(cloudKept/time.Minute) {
				delete(m.uses, u)
			}
		}
	}
	m.noted = minute
	m.uses[use{minute, bucket, method}] += units
}

// Use meters units that another program used at a time. They count against that day's limits.
func (s *YouTube) Use(at time.Time, bucket string, units int64) {
	defer s.locked()()
	_, used := s.meter.day(at)
	used[bucket] += units
	s.meter.Total[bucket] += units
	s.meter.record(at, bucket, "elsewhere", units)
}

// Yesterday returns noon of the previous Pacific day.
func (s *YouTube) Yesterday() time.Time {
	now := s.now()
	defer s.locked()()
	y, m, d := now.In(s.meter.pacific).Date()
	return time.Date(y, m, d-1, 12, 0, 0, 0, s.meter.pacific)
}

var (
	usagePath  = regexp.MustCompile(`^/v3/projects/([^/]+)/timeSeries$`)
	limitsPath = regexp.MustCompile(
		`^/v1beta1/projects/([^/]+)/services/youtube\.googleapis\.com/consumerQuotaMetrics$`)
)

// cloud serves the metering APIs. It returns false for other requests.
func (s *YouTube) cloud(w http.ResponseWriter, r *http.Request) bool {
	var e *apiError
	var body any
	if found := usagePath.FindStringSubmatch(r.URL.Path); found != nil {
		if e = s.cloudRefuses(r, found[1], "usage"); e == nil {
			body, e = s.timeSeries(r)
		}
	} else if found := limitsPath.FindStringSubmatch(r.URL.Path); found != nil {
		if e = s.cloudRefuses(r, found[1], "limits"); e == nil {
			body = s.quotaMetrics()
		}
	} else {
		return false
	}
	if e != nil {
		writeError(w, e)
		return true
	}
	writeBody(w, http.StatusOK, encode(body, true))
	return true
}

// cloudRefuses returns why a request is refused, or nil.
func (s *YouTube) cloudRefuses(r *http.Request, project, what string) *apiError {
	name := map[string]string{"usage": "monitoring.googleapis.com",
		"limits": "serviceusage.googleapis.com"}[what]
	permission := map[string]string{"usage": "monitoring.timeSeries.list",
		"limits": "serviceusage.quotas.get"}[what]
	fault := s.cloudFault()
	switch {
	case r.Method != http.MethodGet:
		return newError(http.StatusMethodNotAllowed, "global", "httpMethodNotAllowed",
			"Method not allowed")
	case fault == "503":
		return newError(http.StatusServiceUnavailable, "global", "backendError",
			"The service is currently unavailable.")
	case !s.mayRead(r, what):
		return newError(http.StatusUnauthorized, "global", "authError",
			"Request had invalid authentication credentials. Expected OAuth 2 access token.").rpc()
	case s.Cloud.Project != "" && project != s.Cloud.Project:
		return newError(http.StatusForbidden, "global", "forbidden", fmt.Sprintf(
			"Permission %s denied (or the resource may not exist).", permission)).rpc()
	case fault == what+"-disabled":
		return newError(http.StatusForbidden, "usageLimits", "accessNotConfigured", fmt.Sprintf(
			"%s has not been used in project %s before or it is disabled.", name, project)).
			rpc(errorInfo("SERVICE_DISABLED", map[string]string{"consumer": "projects/" + project}))
	case fault == "no-"+what+"-role":
		return newError(http.StatusForbidden, "global", "forbidden",
			fmt.Sprintf("Permission %s denied.", permission)).rpc()
	}
	return nil
}

func (s *YouTube) cloudFault() string {
	defer s.locked()()
	return s.Cloud.Fault
}

// series is a time series of the metric, with one point.
type series struct {
	Metric struct {
		Type   string            `json:"type"`
		Labels map[string]string `json:"labels"`
	} `json:"metric"`
	Resource struct {
		Type   string            `json:"type"`
		Labels map[string]string `json:"labels"`
	} `json:"resource"`
	Kind   string  `json:"metricKind"`
	Type   string  `json:"valueType"`
	Points []point `json:"points"`
}

type point struct {
	Interval struct {
		Start string `json:"startTime"`
		End   string `json:"endTime"`
	} `json:"interval"`
	Value struct {
		Int64 string `json:"int64Value"`
	} `json:"value"`
}

const usageMetric = "serviceruntime.googleapis.com/quota/rate/net_usage"

// timeSeries serves timeSeries.list for the one metric: the sum over the whole interval, by
// quota_metric. It refuses other queries.
func (s *YouTube) timeSeries(r *http.Request) (any, *apiError) {
	q := r.URL.Query()
	start, err := time.Parse(time.RFC3339, q.Get("interval.startTime"))
	end, err2 := time.Parse(time.RFC3339, q.Get("interval.endTime"))
	period := strings.TrimSuffix(q.Get("aggregation.alignmentPeriod"), "s")
	seconds, err3 := strconv.ParseInt(period, 10, 64)
	filter := q.Get("filter")
	invalid := func(field string) (any, *apiError) {
		return nil, newError(http.StatusBadRequest, "global", "badRequest",
			"Field "+field+" had an invalid value.").rpc()
	}
	switch {
	case !strings.Contains(filter, `metric.type="`+usageMetric+`"`),
		!strings.Contains(filter, `resource.type="consumer_quota"`),
		!strings.Contains(filter, `resource.label.service="youtube.googleapis.com"`):
		return invalid("filter")
	case err != nil, err2 != nil, !end.After(start):
		return invalid("interval")
	case err3 != nil || seconds < 60 || time.Duration(seconds)*time.Second != end.Sub(start):
		return invalid("aggregation.alignment_period")
	case q.Get("aggregation.perSeriesAligner") != "ALIGN_SUM",
		q.Get("aggregation.crossSeriesReducer") != "REDUCE_SUM",
		!slices.Equal(q["aggregation.groupByFields"], []string{"metric.label.quota_metric"}):
		return invalid("aggregation")
	}
	return s.page(s.usage(start, end), q.Get("pageToken")), nil
}

// page returns one series of a list, so that clients must follow the page tokens.
func (s *YouTube) page(all []series, token string) any {
	n, _ := strconv.Atoi(token)
	body := map[string]any{"unit": "1"}
	if n < len(all) {
		body["timeSeries"] = all[n : n+1]
	}
	if n+1 < len(all) {
		body["nextPageToken"] = strconv.Itoa(n + 1)
	}
	return body
}

// usage sums the minutes of an interval that ended at least Lag ago.
func (s *YouTube) usage(start, end time.Time) (list []series) {
	now := s.now()
	defer s.locked()()
	if s.Cloud.Fault == "empty" {
		return nil
	}
	shown := now.Add(-s.Cloud.Lag)
	sums := map[string]int64{}
	for u, units := range s.meter.uses {
		at := time.Unix(u.minute*60, 0)
		if !at.Before(start) && at.Before(end) && !at.Add(time.Minute).After(shown) {
			sums[u.bucket] += units
		}
	}
	for bucket, units := range sums {
		var one series
		one.Metric.Type, one.Kind, one.Type = usageMetric, "DELTA", "INT64"
		one.Metric.Labels = map[string]string{"quota_metric": "youtube.googleapis.com/" + bucket}
		one.Resource.Type = "consumer_quota"
		one.Resource.Labels = map[string]string{"project_id": s.Cloud.Project}
		var p point
		p.Interval.Start, p.Interval.End = start.Format(time.RFC3339), end.Format(time.RFC3339)
		p.Value.Int64 = strconv.FormatInt(units, 10)
		one.Points = []point{p}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b series) int {
		return cmp.Compare(a.Metric.Labels["quota_metric"], b.Metric.Labels["quota_metric"])
	})
	return list
}

// quotaMetrics serves consumerQuotaMetrics.list: the daily limits, and the limit per minute if
// there is one.
func (s *YouTube) quotaMetrics() any {
	defer s.locked()()
	limit := func(unit string, units int64) map[string]any {
		text := strconv.FormatInt(units, 10)
		return map[string]any{"unit": unit, "quotaBuckets": []any{
			map[string]any{"effectiveLimit": text, "defaultLimit": text}}}
	}
	var metrics []any
	for _, bucket := range slices.Sorted(maps.Keys(s.meter.limits)) {
		limits := []any{limit("1/d/{project}", s.meter.limits[bucket])}
		if bucket == "default" && s.MinuteLimit > 0 {
			limits = append(limits, limit("1/min/{project}", s.MinuteLimit))
		}
		name := "youtube.googleapis.com/" + bucket
		metrics = append(metrics, map[string]any{"metric": name, "displayName": bucket, "unit": "1",
			"consumerQuotaLimits": limits})
	}
	return map[string]any{"metrics": metrics}
}

// Shown returns the units of a bucket, used after start and up to end, that the metric shows by
// now.
func (s *YouTube) Shown(bucket string, start, end time.Time) (units int64) {
	for _, one := range s.usage(start, end) {
		if one.Metric.Labels["quota_metric"] == "youtube.googleapis.com/"+bucket {
			units, _ = strconv.ParseInt(one.Points[0].Value.Int64, 10, 64)
		}
	}
	return units
}
