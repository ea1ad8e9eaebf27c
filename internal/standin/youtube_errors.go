package standin

// failDay sends a bucket's error when its day is used up: a 403 for the default bucket, a 429 for
// the narrow ones.
func (c *call) failDay(bucket string, limit int64) {
	if bucket == "default" {
		c.fail("quotaExceeded", nil)
	}
	c.failRate(bucket, "day", limit)
}

// failRate sends the 429 of a limit per day or per minute.
func (c *call) failRate(bucket, per string, limit int64) {
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
	c.fail("rateLimitExceeded", object{"metric": name[0], "period": per, "bucket": bucket,
		"quota_limit": quotaLimit, "unit": unit, "limit": decimal(limit)})
}

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

// failIf sends the error of the request's fault, and adds to a counter, if the fault has that
// effect.
func (c *call) failIf(has effect, m method, counter *int64) {
	f := youTubeFaults[c.fault]
	if f.effect != has || f.name == "" {
		return
	}
	if counter != nil {
		c.count(counter)
	}
	if f.name == "minute" || f.name == "day" {
		c.failRate(m.bucket, f.name, 1)
	}
	c.fail(f.name, object{"called": m.id})
}

// replace sends the response of a fault that replaces the real one, and ends the handler.
func (c *call) replace(m method) {
	if youTubeFaults[c.fault].effect != replaces {
		return
	}
	c.failIf(replaces, m, nil)
	switch c.fault {
	case "200-html":
		c.html(200, "Sorry")
	case "500-html":
		c.html(500, "Server Error")
	case "500-null":
		c.json(500, object{"error": object{"code": 500, "message": nil}})
	}
	c.dropResponse()
	panic(errEnded)
}
