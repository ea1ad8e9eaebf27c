package standin

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Cloud serves the metering of YouTube to service accounts, as Google's Cloud Monitoring and
// Service Usage do. The zero value has no account and refuses all requests.
type Cloud struct {
	// Project is the project's ID; "" matches any.
	Project string
	// Accounts may request tokens.
	Accounts []*ServiceAccount
	// Lag is the delay until the metering reports units.
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

// use is a row of the usage metric: the units of a bucket in one minute.
type use struct {
	minute int64 // since 1970
	bucket string
}

// Use meters units that another program used at a time. They count against that day's limits.
func (s *YouTube) Use(at time.Time, bucket string, units int64) {
	defer s.locked()()
	now, m := s.engine.now(), &s.engine.meter
	m.bill(bucket, units)
	for _, r := range m.ratesOf(bucket) {
		r.turn(now)
		if start, end := r.period(now); !at.Before(start) && at.Before(end) {
			r.used += float64(units)
		}
	}
	s.usage[use{at.Unix() / 60, bucket}] += units
}

// Yesterday returns noon of the previous Pacific day.
func (s *YouTube) Yesterday() time.Time {
	defer s.locked()()
	y, m, d := s.engine.now().Date()
	return time.Date(y, m, d-1, 12, 0, 0, 0, s.engine.zone)
}

// service is a Google API that reports the metering.
type service struct {
	Before, After    string // path before and after the project
	Name, Permission string
	Scopes           []string // OAuth scopes, each of which allows access
}

// serveCloud serves the metering APIs and their tokens. It returns false for other requests.
func (s *YouTube) serveCloud(w http.ResponseWriter, r *http.Request) bool {
	c := &call{s: s.engine, w: w, r: r}
	if r.URL.Path == "/token" && len(s.Cloud.Accounts) > 0 {
		c.serve(s.token)
		return true
	}
	for what, service := range s.engine.api.Services {
		project, below := strings.CutPrefix(r.URL.Path, service.Before)
		project, found := strings.CutSuffix(project, service.After)
		if below && found && project != "" && !strings.Contains(project, "/") {
			c.serve(func(c *call) { s.cloud(c, project, what) })
			return true
		}
	}
	return false
}

// cloud serves one of services.
func (s *YouTube) cloud(c *call, project, what string) {
	service, problem := c.s.api.Services[what], ""
	switch fault := s.Cloud.Fault; {
	case c.r.Method != http.MethodGet:
		problem = "httpMethodNotAllowed"
	case fault == "503":
		problem = "backendError meter"
	case !s.mayRead(c.r, service):
		problem = "authError meter"
	case s.Cloud.Project != "" && project != s.Cloud.Project:
		problem = "forbidden project"
	case fault == what+"-disabled":
		problem = "accessNotConfigured meter"
	case fault == "no-"+what+"-role":
		problem = "forbidden meter"
	}
	if problem != "" {
		c.fail(problem, object{"permission": service.Permission, "service": service.Name,
			"project": project})
	}
	if what == "usage" {
		c.ok(s.timeSeries(c))
	} else {
		c.ok(s.quotaMetrics(c))
	}
}

const usageMetric = "serviceruntime.googleapis.com/quota/rate/net_usage"

// timeSeries serves timeSeries.list for the one metric: the sum over the whole interval, by
// quota_metric. It refuses other queries.
func (s *YouTube) timeSeries(c *call) object {
	q := c.r.URL.Query()
	start, err := time.Parse(time.RFC3339, q.Get("interval.startTime"))
	end, err2 := time.Parse(time.RFC3339, q.Get("interval.endTime"))
	period, err3 := time.ParseDuration(q.Get("aggregation.alignmentPeriod"))
	filter, field := q.Get("filter"), ""
	switch {
	case !strings.Contains(filter, `metric.type="`+usageMetric+`"`),
		!strings.Contains(filter, `resource.type="consumer_quota"`),
		!strings.Contains(filter, `resource.label.service="youtube.googleapis.com"`):
		field = "filter"
	case err != nil, err2 != nil, !end.After(start):
		field = "interval"
	case err3 != nil || period < time.Minute || period != end.Sub(start):
		field = "aggregation.alignment_period"
	case q.Get("aggregation.perSeriesAligner") != "ALIGN_SUM",
		q.Get("aggregation.crossSeriesReducer") != "REDUCE_SUM",
		!slices.Equal(q["aggregation.groupByFields"], []string{"metric.label.quota_metric"}):
		field = "aggregation"
	}
	if field != "" {
		c.fail("badRequest meter", object{"field": field})
	}
	sums := s.Shown(start, end)
	buckets := slices.Sorted(maps.Keys(sums))
	// One series a page, so that clients must follow the page tokens.
	n, _ := strconv.Atoi(q.Get("pageToken"))
	body := object{"unit": "1"}
	if n < len(buckets) {
		body["timeSeries"] = []any{c.doc("timeSeries", object{"bucket": buckets[n],
			"project": s.Cloud.Project, "start": start.Format(time.RFC3339),
			"end": end.Format(time.RFC3339), "units": decimal(sums[buckets[n]])})}
	}
	if n+1 < len(buckets) {
		body["nextPageToken"] = strconv.Itoa(n + 1)
	}
	return body
}

// Shown returns the units that the metric now reports for an interval, by bucket. It omits minutes
// that ended less than Lag ago.
func (s *YouTube) Shown(start, end time.Time) map[string]int64 {
	defer s.locked()()
	sums, shown := map[string]int64{}, s.engine.now().Add(-s.Cloud.Lag)
	for u, units := range s.usage {
		at := time.Unix(u.minute*60, 0)
		if s.Cloud.Fault != "empty" && !at.Before(start) && at.Before(end) &&
			!at.Add(time.Minute).After(shown) {
			sums[u.bucket] += units
		}
	}
	return sums
}

// quotaMetrics serves consumerQuotaMetrics.list: the daily limits, and the limit per minute if
// there is one.
func (s *YouTube) quotaMetrics(c *call) object {
	defer s.locked()()
	limit := func(bucket, unit string, units int64) object {
		return c.doc("quotaLimit", object{"bucket": bucket, "unit": unit, "units": decimal(units)})
	}
	var metrics []any
	all := s.engine.meter.limits
	for _, bucket := range slices.Sorted(maps.Keys(all)) {
		if bucket == minuteBucket {
			continue
		}
		limits := []any{limit(bucket, "1/d/{project}", all[bucket][0].Units)}
		if perMinute := all[minuteBucket]; bucket == "default" && len(perMinute) > 0 {
			limits = append(limits, limit(bucket, "1/min/{project}", perMinute[0].Units))
		}
		metrics = append(metrics, c.doc("quotaMetric", object{"bucket": bucket, "limits": limits}))
	}
	return object{"metrics": metrics}
}
