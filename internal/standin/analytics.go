package standin

import (
	"net/http"
	"regexp"
	"slices"
)

var reportPath = regexp.MustCompile(`^/v1(?:beta|alpha)/properties/(\d+):(runReport|` +
	`runPivotReport|batchRunReports|batchRunPivotReports|runRealtimeReport|runFunnelReport|chat)$`)

// analyticsPart returns the part of a bucket that the property of a request has, in the category of
// its report.
func (c *call) analyticsPart(bucket string) string {
	path := reportPath.FindStringSubmatch(c.r.URL.Path)
	if path == nil {
		return ""
	}
	switch path[2] {
	case "runRealtimeReport":
		return bucket + "/realtime." + path[1]
	case "runFunnelReport":
		return bucket + "/funnel." + path[1]
	case "chat":
		return "chat_tokens/" + path[1]
	}
	return bucket + "/core." + path[1]
}

// report is what a report asks for.
type report struct {
	Dimensions          []struct{ Name string } `json:"dimensions"`
	Metrics             []struct{ Name string } `json:"metrics"`
	DateRanges          []any                   `json:"dateRanges"`
	ReturnPropertyQuota bool                    `json:"returnPropertyQuota"`
	UserQuery           string                  `json:"userQuery"`
	Requests            []report                `json:"requests"`
}

// tokens are what a report takes: 1, and 1 for each dimension, metric and range of dates, and up to
// 5 more, from a hash of the request.
func (r report) tokens(seed uint64) int64 {
	return int64(1+len(r.Dimensions)+len(r.Metrics)+len(r.DateRanges)) + int64(seed%6)
}

// serveAnalytics counts the tokens of reports: by the Pacific day, by the hour, and by the hour for
// one project.
func serveAnalytics(c *call) {
	path := reportPath.FindStringSubmatch(c.r.URL.Path)
	var q report
	switch {
	case path == nil || c.r.Method != http.MethodPost:
		c.fail(http.StatusNotFound, "Requested entity was not found.")
		return
	case !c.parse(&q):
		return
	}
	if path[2] == "chat" {
		if c.admit(one(c.analyticsPart(""), int64(len(q.UserQuery)))) {
			c.ok(c.doc("chat", object{"quota": c.propertyQuota(int64(len(q.UserQuery)))}))
		}
		return
	}
	batch := path[2] == "batchRunReports" || path[2] == "batchRunPivotReports"
	reports := []report{q}
	if batch {
		reports = q.Requests
	}
	var tokens int64
	for _, r := range reports {
		if len(r.Metrics) == 0 && len(r.Dimensions) == 0 {
			c.invalid("A report must have a dimension or a metric.")
			return
		}
		tokens += r.tokens(c.hash())
	}
	if len(reports) == 0 || len(reports) > 5 {
		c.invalid("A batch has 1 to 5 reports.")
		return
	}
	if !c.admit(one(c.analyticsPart("tokens"), tokens), under(c.analyticsPart("concurrent")),
		cost{bucket: c.analyticsPart("server_errors"), gate: true}) {
		return
	}
	var docs []any
	for _, r := range reports {
		docs = append(docs, c.reportOf(r, r.tokens(c.hash())))
	}
	if batch {
		c.ok(object{"kind": "analyticsData#" + path[2], "reports": docs})
		return
	}
	c.ok(docs[0])
}

// reportOf returns one report that took so many tokens.
func (c *call) reportOf(r report, tokens int64) object {
	names := func(fields []struct{ Name string }) []any {
		all := []any{}
		for _, f := range fields {
			all = append(all, object{"name": f.Name})
		}
		return all
	}
	values := func(n int, text string) []any { return slices.Repeat([]any{object{"value": text}}, n) }
	rows := slices.Repeat([]any{object{"dimensionValues": values(len(r.Dimensions), "Berlin"),
		"metricValues": values(len(r.Metrics), "42")}}, c.s.Rows)
	doc := c.doc("report", object{"count": len(rows), "rows": rows,
		"dimensions": names(r.Dimensions), "metrics": names(r.Metrics)})
	if r.ReturnPropertyQuota && c.fault != "no-usage" {
		doc["propertyQuota"] = c.propertyQuota(tokens)
	}
	return doc
}

// propertyQuota returns what a report took and what is left of each limit.
func (c *call) propertyQuota(tokens int64) object {
	doc := object{}
	for _, q := range []struct {
		name, bucket string
		index        int
		consumed     int64
	}{{"tokensPerDay", "tokens", 0, tokens}, {"tokensPerHour", "tokens", 1, tokens},
		{"tokensPerProjectPerHour", "tokens", 2, tokens},
		{"concurrentRequests", "concurrent", 0, 0},
		{"serverErrorsPerProjectPerHour", "server_errors", 0, 0}} {
		g, ok := c.gauge(c.analyticsPart(q.bucket), q.index)
		if !ok || c.fault == "no-headers" {
			continue
		}
		entry := object{"consumed": q.consumed, "remaining": c.leftInBody(g)}
		for name, value := range entry {
			if value == int64(0) {
				delete(entry, name) // as protobuf's JSON has it
			}
		}
		doc[q.name] = entry
	}
	return doc
}
