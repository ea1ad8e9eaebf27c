package standin

import "slices"

// analyticsRoutes count the tokens of reports per Pacific day, per hour, and per hour and project.
// The part of a route is the category of its reports.
var analyticsRoutes = []route{
	{properties + ":run(?:Pivot)?Report", (*call).runReport, "core"},
	{properties + ":runRealtimeReport", (*call).runReport, "realtime"},
	{properties + ":runFunnelReport", (*call).runReport, "funnel"},
	{properties + ":(batchRun(?:Pivot)?Reports)", (*call).batchReports, "core"},
	{properties + ":chat", func(c *call) {
		var q report
		c.parse(&q)
		tokens := int64(len(q.UserQuery))
		c.admit(one(c.bucket("chat_tokens"), tokens))
		c.ok(c.doc("chat", object{"tokens": tokens}))
	}, "chat"},
}

const properties = `POST /v1(?:beta|alpha)/properties/(\d+)`

// analyticsPart returns the part of a bucket for the request's property and the category of its
// report.
func analyticsPart(c *call, bucket string) string {
	switch c.route.part {
	case "":
		return ""
	case "chat":
		return "chat_tokens/" + c.match[1]
	}
	return bucket + "/" + c.route.part + "." + c.match[1]
}

// report is the request for a report.
type report struct {
	Dimensions          []struct{ Name string } `json:"dimensions"`
	Metrics             []struct{ Name string } `json:"metrics"`
	DateRanges          []any                   `json:"dateRanges"`
	ReturnPropertyQuota bool                    `json:"returnPropertyQuota"`
	UserQuery           string                  `json:"userQuery"`
	Requests            []report                `json:"requests"`
}

// tokens returns the cost of a report: 1, and 1 for each dimension, metric and range of dates, and
// up to 5 more, from a hash of the request.
func (r report) tokens(seed uint64) int64 {
	return int64(1+len(r.Dimensions)+len(r.Metrics)+len(r.DateRanges)) + int64(seed%6)
}

func (c *call) runReport() {
	var q report
	c.parse(&q)
	c.ok(c.reports([]report{q})[0])
}

func (c *call) batchReports() {
	var q report
	c.parse(&q)
	c.ok(object{"kind": "analyticsData#" + c.match[2], "reports": c.reports(q.Requests)})
}

// reports bills and returns reports.
func (c *call) reports(all []report) (docs []any) {
	var tokens int64
	for _, r := range all {
		if len(r.Metrics) == 0 && len(r.Dimensions) == 0 {
			c.fail("empty report", nil)
		}
		tokens += r.tokens(c.hash())
	}
	if len(all) == 0 || len(all) > 5 {
		c.fail("wrong batch", nil)
	}
	c.admit(one(c.bucket("tokens"), tokens), under(c.bucket("concurrent")),
		cost{bucket: c.bucket("server_errors"), gate: true})
	for _, r := range all {
		docs = append(docs, c.reportOf(r, r.tokens(c.hash())))
	}
	return docs
}

// reportOf returns the response to one report, which states its cost in tokens.
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
	document := "report"
	if r.ReturnPropertyQuota && c.fault != "no-headers" {
		document = "report_with_quota"
	}
	return c.doc(document, object{"count": len(rows), "rows": rows, "tokens": tokens,
		"dimensions": names(r.Dimensions), "metrics": names(r.Metrics)})
}
