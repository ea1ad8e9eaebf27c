package standin

import "net/http"

// effect is what a kind of fault does to the metering and the response.
type effect int

const (
	none     effect = iota
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

// faultError returns the error of the request's fault if it has that effect, or nil.
func (c *call) faultError(m method, has effect) *apiError {
	switch f := youTubeFaults[c.fault]; {
	case f.effect != has || f.name == "":
		return nil
	case f.name == "minute" || f.name == "day":
		return errRate(m.bucket, f.name, 1)
	default:
		return googleError(f.name, "method", m.id)
	}
}

// replaced sends the response of a fault that replaces the real one, or returns false.
func (c *call) replaced(m method) bool {
	e := c.faultError(m, replaces)
	switch {
	case youTubeFaults[c.fault].effect != replaces:
		return false
	case e != nil:
		c.apiError(e)
	case c.fault == "200-html":
		c.html(http.StatusOK, "Sorry")
	case c.fault == "500-html":
		c.html(http.StatusInternalServerError, "Server Error")
	case c.fault == "500-null":
		c.google(http.StatusInternalServerError, []byte(`{"error":{"code":500,"message":null}}`))
	default:
		c.lost()
	}
	return true
}
