// Package fault classifies errors of the YouTube Data API by what to do about them.
package fault

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/youtube/bounds"
)

// Kind is what an error of the upstream means for whoever asked.
type Kind int

const (
	Permanent     Kind = iota // this request will fail however often it is sent
	Transient                 // the upstream or the network failed: retry a few times
	Throttled                 // too many requests within a minute: retry after a while
	Exhausted                 // the day's quota is gone: retry after the reset, not before
	BadCredential             // the key is wrong, missing or blocked, or the API is off
	BadRegion                 // the upstream knows no such region: drop it
	NoChart                   // the region or the category has no chart today
	BadPageToken              // the page is gone: read the chart from its beginning
)

var kindNames = [...]string{"permanent", "transient", "throttled", "exhausted", "bad credential",
	"bad region", "no chart", "bad page token"}

func (k Kind) String() string { return kindNames[k] }

// Fault is what an answer that is no success says.
type Fault struct {
	Kind   Kind
	Status int // of HTTP
	// The rest is zero where the answer does not say.
	Reason      string    // the most specific one: quotaExceeded, API_KEY_INVALID
	Message     string    // as plain text in one line, cut to 300 characters
	Metric      string    // the quota metric that is exhausted or throttled
	WindowStart time.Time // of the quota window
}

// Classify says what an answer with this status, not a 2xx, and this body means. The status alone
// never decides where the body says more: a spent day comes as 403 and as 429, a bad key as 400.
// The first rule that applies holds:
//
//  1. ErrorInfo names a quota unit: by the day is Exhausted, by a shorter time Throttled.
//  2. The reason quotaExceeded or dailyLimitExceeded is Exhausted.
//  3. A 403 or 429 with "per day" in its message, and no reason but a rate limit, is Exhausted.
//  4. Any other 429, and the reasons of rate limits, are Throttled.
//  5. A 5xx is Transient, and so is an answer whose JSON was cut short: what it said is not known.
//  6. The rest is Permanent, or what its reason says in particular.
//
// A message may repeat what the caller has sent: a region, a page token, words to search for. So
// words count in rule 3 alone, and for a key in a 400 whose reason is no more than badRequest.
func Classify(status int, body []byte) Fault {
	said := parseAnswer(body)
	f := Fault{Status: status, Reason: said.reason(), Message: bounds.Plain(said.message)}
	if f.Kind = classifyQuota(status, said); f.Kind == Permanent {
		f.Kind = classifyRest(status, said)
	}
	if f.Kind == Exhausted || f.Kind == Throttled {
		f.Metric = said.quota["quota_metric"]
		f.WindowStart, _ = time.Parse(time.RFC3339, said.quota["window_start_time"])
	}
	return f
}

// classifyQuota holds rules 1 to 3; Permanent says that none applies.
func classifyQuota(status int, said answer) Kind {
	switch unit := said.quota["quota_unit"]; {
	case strings.HasPrefix(unit, "1/d/"):
		return Exhausted
	case strings.HasPrefix(unit, "1/min/"), strings.HasPrefix(unit, "1/s/"),
		strings.HasPrefix(unit, "1/h/"):
		return Throttled
	}
	if said.has("quotaExceeded", "dailyLimitExceeded") || said.saysPerDay(status) {
		return Exhausted
	}
	return Permanent
}

// saysPerDay is rule 3.
func (a answer) saysPerDay(status int) bool {
	return (status == http.StatusForbidden || status == http.StatusTooManyRequests) &&
		a.words && a.quota == nil && a.hasOnly("rateLimitExceeded", "RATE_LIMIT_EXCEEDED") &&
		strings.Contains(strings.ToLower(a.message), "per day")
}

// classifyRest holds rules 4 to 6.
func classifyRest(status int, said answer) Kind {
	switch {
	case status == http.StatusTooManyRequests,
		said.has("rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"):
		return Throttled
	case status >= 500, said.cut:
		return Transient
	case status == http.StatusUnauthorized, said.deniesCredential(status):
		return BadCredential
	case said.has("invalidRegionCode"):
		return BadRegion
	case said.has("videoChartNotFound"), status == http.StatusNotFound && said.has("notFound"):
		return NoChart
	case said.has("invalidPageToken"):
		return BadPageToken
	}
	return Permanent
}

// deniesCredential tells a refused key from a refused resource: both may come as 403 forbidden, but
// only a refused key is of the global domain.
func (a answer) deniesCredential(status int) bool {
	refused := func(r reason) bool {
		return strings.HasPrefix(r.word, "API_KEY_") ||
			strings.HasPrefix(r.word, "ACCESS_TOKEN_") ||
			r.word == "forbidden" && r.domain == "global"
	}
	return slices.ContainsFunc(a.reasons, refused) ||
		a.has("keyInvalid", "keyExpired", "accessNotConfigured", "ipRefererBlocked", "authError",
			"dailyLimitExceededUnreg", "SERVICE_DISABLED", "CONSUMER_INVALID",
			"CONSUMER_SUSPENDED") ||
		status == http.StatusBadRequest && a.words && a.hasOnly("badRequest") &&
			(strings.HasPrefix(a.message, "API key not valid") ||
				strings.HasPrefix(a.message, "API key expired"))
}
