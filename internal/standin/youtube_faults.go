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
	err func(method) *apiError
}{
	"403-disabled": {refuses, func(method) *apiError { return errNotConfigured() }},
	"403-blocked":  {refuses, errKeyBlocked},
	"403-quota":    {rejects, func(method) *apiError { return errQuotaExceeded() }},
	"403-daily":    {rejects, func(method) *apiError { return errDailyLimitOld() }},
	"429":          {rejects, func(m method) *apiError { return errRate(m.bucket, "minute", 1) }},
	"429-day":      {rejects, func(m method) *apiError { return errRate(m.bucket, "day", 1) }},
	"429-bare":     {rejects, func(method) *apiError { return errRateBare() }},
	"400-token":    {replaces, func(method) *apiError { return errPageToken() }},
	"404-chart":    {replaces, func(method) *apiError { return errNoChart() }},
	"500":          {replaces, func(method) *apiError { return errBackend(500) }},
	"503":          {replaces, func(method) *apiError { return errBackend(503) }},
	"500-html":     {effect: replaces},
	"500-null":     {effect: replaces}, // an error whose message is null
	"200-html":     {effect: replaces},
	"hang":         {effect: replaces}, // no response until the client disconnects
	"drop":         {effect: replaces}, // the connection is dropped before the response
	"cut":          {effect: garbles},  // the connection is dropped in the middle of the body
	"truncated":    {effect: garbles},  // half the JSON, with status 200
	"repeat":       {effect: garbles},  // the first ID of the page comes again as its last
}

// replaced sends the response of a fault that replaces the real one, or returns false.
func (c *call) replaced(m method) bool {
	f := youTubeFaults[c.fault]
	switch {
	case f.effect != replaces:
		return false
	case f.err != nil:
		c.apiError(f.err(m))
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
