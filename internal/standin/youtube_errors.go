package standin

// problem is an error of apis/youtube.yaml, with the values for it.
type problem struct {
	name   string
	values object
}

// problem sends an error.
func (c *call) problem(p *problem) { c.fail(p.name, p.values) }

// dayExhausted returns a bucket's error when its day is used up: a 403 for the default bucket, a
// 429 for the narrow ones.
func dayExhausted(bucket string, limit int64) *problem {
	if bucket == "default" {
		return &problem{name: "quotaExceeded"}
	}
	return rateExceeded(bucket, "day", limit)
}

// rateExceeded returns the 429 of a limit per day or per minute.
func rateExceeded(bucket, per string, limit int64) *problem {
	name := map[string][2]string{
		"default":               {"Queries", "default"},
		"search_list":           {"Search Queries", "defaultSearchList"},
		"video_insert":          {"Video Uploads", "defaultVideoInsert"},
		"video_batch_get_stats": {"Video Batch Get Stats", "defaultVideoBatchGetStats"},
	}[bucket]
	quotaLimit, unit := name[1]+"PerDayPerProject", "1/d/{project}"
	if per == "minute" {
		quotaLimit, unit = name[1]+"PerMinutePerProject", "1/min/{project}"
	}
	return &problem{"rateLimitExceeded", object{"metric": name[0], "period": per, "bucket": bucket,
		"quota_limit": quotaLimit, "unit": unit, "limit": decimal(limit)}}
}

// noFilter returns the error of a call without any of its filters.
func noFilter(filters string) *problem {
	return &problem{"missingRequiredParameter filter", object{"filters": filters}}
}

// badUpload returns a 400 of the upload endpoints.
func badUpload(message string) *problem { return &problem{"badRequest", object{"what": message}} }

// effect is what a kind of fault does to the metering and the response.
type effect int

const (
	noEffect effect = iota
	refuses         // an error before metering, not billed
	rejects         // an error before metering, as over a limit
	replaces        // a different response, after metering
	garbles         // a damaged response, after metering
)

// youTubeFaults lists the effect of each kind of fault, and its error if it has one.
var youTubeFaults = map[string]struct {
	effect
	name string
}{
	"403-disabled": {refuses, "accessNotConfigured"},
	"403-blocked":  {refuses, "forbidden key"},
	"403-quota":    {rejects, "quotaExceeded"},
	"403-daily":    {rejects, "dailyLimitExceeded"},
	"429":          {rejects, "minute"},
	"429-day":      {rejects, "day"},
	"429-bare":     {rejects, "rateLimitExceeded bare"},
	"400-token":    {replaces, "invalidPageToken"},
	"404-chart":    {replaces, "videoChartNotFound"},
	"500":          {replaces, "backendError 500"},
	"503":          {replaces, "backendError 503"},
	"500-html":     {effect: replaces},
	"500-null":     {effect: replaces}, // an error whose message is null
	"200-html":     {effect: replaces},
	"hang":         {effect: replaces}, // no response until the client disconnects
	"drop":         {effect: replaces}, // the connection is dropped before the response
	"cut":          {effect: garbles},  // the connection is dropped in the middle of the body
	"truncated":    {effect: garbles},  // half the JSON, with status 200
	"repeat":       {effect: garbles},  // the first ID of the page comes again as its last
}

// faulty returns the error of the request's fault if it has that effect.
func (c *call) faulty(m method, has effect) *problem {
	switch f := youTubeFaults[c.fault]; {
	case f.effect != has || f.name == "":
		return nil
	case f.name == "minute" || f.name == "day":
		return rateExceeded(m.bucket, f.name, 1)
	default:
		return &problem{f.name, object{"called": m.id}}
	}
}

// replaced sends the response of a fault that replaces the real one, or returns false.
func (c *call) replaced(m method) bool {
	p := c.faulty(m, replaces)
	switch {
	case youTubeFaults[c.fault].effect != replaces:
		return false
	case p != nil:
		c.problem(p)
	case c.fault == "200-html":
		c.html(200, "Sorry")
	case c.fault == "500-html":
		c.html(500, "Server Error")
	case c.fault == "500-null":
		c.json(500, object{"error": object{"code": 500, "message": nil}})
	default:
		c.lost()
	}
	return true
}
