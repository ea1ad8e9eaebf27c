package standin

import (
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
)

// consumer is the project of every key of the stand-in.
const consumer = "projects/000000000000"

// apiError is an error of the API, in its envelope {"error": …}.
type apiError struct {
	Code    int         `json:"code"`
	Message string      `json:"message"`
	Errors  []errorItem `json:"errors"` // one element
	// google.rpc code; absent from the API's own errors
	Status  string `json:"status,omitempty"`
	Details []any  `json:"details,omitempty"`
}

type errorItem struct {
	Message      string `json:"message"`
	Domain       string `json:"domain"`
	Reason       string `json:"reason"`
	Location     string `json:"location,omitempty"`
	LocationType string `json:"locationType,omitempty"`
	ExtendedHelp string `json:"extendedHelp,omitempty"`
}

// google is the content of apis/youtube.yaml.
var google = sync.OnceValue(func() (all struct {
	Documents map[string]any
	Errors    map[string]struct {
		Code                             int
		Domain, Message, Parameter, Help string
		Front                            bool
		Details                          []any
	}
}) {
	readSpec("apis/youtube.yaml", &all)
	return all
})

// rpcCodes are the names of google.rpc codes by status.
var rpcCodes = map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED",
	403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}

// googleError returns the error of that name in apis/youtube.yaml. values are pairs of a name in
// its message and the text for it.
func googleError(name string, values ...string) *apiError {
	e, ok := google().Errors[name]
	if !ok {
		panic("no error " + name)
	}
	message := os.Expand(e.Message, func(name string) string {
		for i := 0; i < len(values); i += 2 {
			if values[i] == name {
				return values[i+1]
			}
		}
		panic("no value " + name)
	})
	reason, _, _ := strings.Cut(name, " ")
	item := errorItem{Message: message, Domain: e.Domain, Reason: reason, ExtendedHelp: e.Help}
	if e.Parameter != "" {
		item.Location, item.LocationType = e.Parameter, "parameter"
	}
	full := &apiError{Code: e.Code, Message: message, Errors: []errorItem{item}, Details: e.Details}
	if e.Front {
		full.Status = rpcCodes[e.Code]
	}
	return full
}

// errNoFilter returns the error of a call without any of its filters.
func errNoFilter(filters string) *apiError {
	return googleError("missingRequiredParameter filter", "filters", filters)
}

// errUpload returns a 400 of the upload endpoints.
func errUpload(message string) *apiError { return googleError("badRequest", "what", message) }

// with adds an ErrorInfo.
func (e *apiError) with(reason string, metadata map[string]string) *apiError {
	all := map[string]string{"service": "youtube.googleapis.com"}
	maps.Copy(all, metadata)
	e.Details = []any{object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
		"domain": "googleapis.com", "metadata": all}}
	return e
}

// errDayExhausted returns a bucket's error when its day is used up: a 403 for the default bucket,
// a 429 for the narrow ones.
func errDayExhausted(bucket string, limit int64) *apiError {
	if bucket == "default" {
		return googleError("quotaExceeded")
	}
	return errRate(bucket, "day", limit)
}

// errRate returns the 429 of a limit per day or per minute. Only the quota_unit, the quota_limit
// and the message differ.
func errRate(bucket, per string, limit int64) *apiError {
	name := map[string][2]string{
		"default":               {"Queries", "default"},
		"search_list":           {"Search Queries", "defaultSearchList"},
		"video_insert":          {"Video Uploads", "defaultVideoInsert"},
		"video_batch_get_stats": {"Video Batch Get Stats", "defaultVideoBatchGetStats"},
	}[bucket]
	unit, suffix := "1/d/{project}", "PerDayPerProject"
	if per == "minute" {
		unit, suffix = "1/min/{project}", "PerMinutePerProject"
	}
	return googleError("rateLimitExceeded", "metric", name[0], "period", per).
		with("RATE_LIMIT_EXCEEDED", map[string]string{
			"quota_limit":       name[1] + suffix,
			"quota_unit":        unit,
			"quota_metric":      "youtube.googleapis.com/" + bucket,
			"quota_location":    "global",
			"quota_limit_value": strconv.FormatInt(limit, 10),
			"consumer":          consumer,
		})
}
