package youtubetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// consumer is the project that every key of the stand-in belongs to.
const consumer = "000000000000"

// apiError is an error body of the API. Its fields are those of the envelope; the errors list has
// one element.
type apiError struct {
	Code    int
	Message string
	Domain  string
	Reason  string
	Param   string // the parameter at fault, "" when there is none
	Help    string // extendedHelp, an address, or ""
	Status  string // the google.rpc code, "" in the API's own errors
	Details []any
}

func (e *apiError) MarshalJSON() ([]byte, error) {
	type one struct {
		Message      string `json:"message"`
		Domain       string `json:"domain"`
		Reason       string `json:"reason"`
		Location     string `json:"location,omitempty"`
		LocationType string `json:"locationType,omitempty"`
		ExtendedHelp string `json:"extendedHelp,omitempty"`
	}
	type envelope struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Errors  []one  `json:"errors"`
		Status  string `json:"status,omitempty"`
		Details []any  `json:"details,omitempty"`
	}
	first := one{Message: e.Message, Domain: e.Domain, Reason: e.Reason, Location: e.Param,
		ExtendedHelp: e.Help}
	if e.Param != "" {
		first.LocationType = "parameter"
	}
	return json.Marshal(map[string]envelope{"error": {e.Code, e.Message, []one{first}, e.Status,
		e.Details}})
}

func errorInfo(reason string, metadata map[string]string) map[string]any {
	metadata["service"] = "youtube.googleapis.com"
	return map[string]any{
		"@type":    "type.googleapis.com/google.rpc.ErrorInfo",
		"reason":   reason,
		"domain":   "googleapis.com",
		"metadata": metadata,
	}
}

func errQuotaExceeded() *apiError {
	return &apiError{Code: http.StatusForbidden, Domain: "youtube.quota", Reason: "quotaExceeded",
		Message: `The request cannot be completed because you have exceeded your <a href="/youtube/v3/getting-started#quota">quota</a>.`}
}

func errDailyLimitOld() *apiError {
	return &apiError{Code: http.StatusForbidden, Domain: "usageLimits",
		Reason: "dailyLimitExceeded",
		Message: "Daily Limit Exceeded. The quota will be reset at midnight Pacific Time (PT). " +
			"You may monitor your quota usage and adjust limits in the API Console."}
}

// errDayExhausted is what a bucket whose day is spent answers: the default one a 403, the narrow
// ones a 429.
func errDayExhausted(bucket string, limit int64) *apiError {
	if bucket == "default" {
		return errQuotaExceeded()
	}
	return errRate(bucket, "day", limit)
}

func errMinuteExhausted(bucket string, limit int64) *apiError {
	return errRate(bucket, "minute", limit)
}

// errRate is the 429 of a limit per day or per minute; only the quota_unit, the quota_limit and the
// message tell them apart.
func errRate(bucket, per string, limit int64) *apiError {
	names := map[string][2]string{
		"default":               {"Queries", "default"},
		"search_list":           {"Search Queries", "defaultSearchList"},
		"video_insert":          {"Video Uploads", "defaultVideoInsert"},
		"video_batch_get_stats": {"Video Batch Get Stats", "defaultVideoBatchGetStats"},
	}
	unit, suffix := "1/d/{project}", "PerDayPerProject"
	if per == "minute" {
		unit, suffix = "1/min/{project}", "PerMinutePerProject"
	}
	name := names[bucket]
	return &apiError{
		Code: http.StatusTooManyRequests, Domain: "global", Reason: "rateLimitExceeded",
		Status: "RESOURCE_EXHAUSTED",
		Message: fmt.Sprintf("Quota exceeded for quota metric '%s' and limit '%s per %s' of "+
			"service "+
			"'youtube.googleapis.com' for consumer 'project_number:%s'.", name[0], name[0], per,
			consumer),
		Details: []any{errorInfo("RATE_LIMIT_EXCEEDED", map[string]string{
			"quota_limit":       name[1] + suffix,
			"quota_unit":        unit,
			"quota_metric":      "youtube.googleapis.com/" + bucket,
			"quota_location":    "global",
			"quota_limit_value": strconv.FormatInt(limit, 10),
			"consumer":          "projects/" + consumer,
		})},
	}
}

func errRateBare() *apiError {
	return &apiError{Code: http.StatusTooManyRequests, Domain: "usageLimits",
		Reason:  "rateLimitExceeded",
		Message: "Rate Limit Exceeded"}
}

func errKeyMissing() *apiError {
	return &apiError{Code: http.StatusForbidden, Domain: "global", Reason: "forbidden",
		Status:  "PERMISSION_DENIED",
		Message: "The request is missing a valid API key."}
}

func errKeyInvalid() *apiError {
	return &apiError{Code: http.StatusBadRequest, Domain: "global", Reason: "badRequest",
		Status:  "INVALID_ARGUMENT",
		Message: "API key not valid. Please pass a valid API key.",
		Details: []any{errorInfo("API_KEY_INVALID", map[string]string{})}}
}

func errKeyBlocked(m method) *apiError {
	return &apiError{Code: http.StatusForbidden, Domain: "global", Reason: "forbidden",
		Status:  "PERMISSION_DENIED",
		Message: "Requests to this API youtube method " + m.id + " are blocked.",
		Details: []any{errorInfo("API_KEY_SERVICE_BLOCKED",
			map[string]string{"consumer": "projects/" + consumer})}}
}

func errNotConfigured() *apiError {
	url := "https://console.developers.google.com/apis/api/youtube.googleapis.com/overview?project=" + consumer
	return &apiError{Code: http.StatusForbidden, Domain: "usageLimits",
		Reason: "accessNotConfigured", Status: "PERMISSION_DENIED",
		Help: "https://console.developers.google.com",
		Message: "YouTube Data API v3 has not been used in project " + consumer +
			" before or it is disabled. Enable it by visiting " + url +
			" then retry. If you enabled this API " +
			"recently, wait a few minutes for the action to propagate to our systems and retry.",
		Details: []any{
			map[string]any{"@type": "type.googleapis.com/google.rpc.Help",
				"links": []any{map[string]string{
					"description": "Google developers console API activation", "url": url}}},
			errorInfo("SERVICE_DISABLED", map[string]string{"consumer": "projects/" + consumer}),
		}}
}

func errBackend(code int) *apiError {
	return &apiError{Code: code, Domain: "global", Reason: "backendError", Message: "Backend Error"}
}

// errParameter is a 400 that blames a parameter.
func errParameter(reason, param, message string) *apiError {
	return &apiError{Code: http.StatusBadRequest, Domain: "youtube.parameter", Reason: reason,
		Param: param, Message: message}
}

func errRegion() *apiError {
	return errParameter("invalidRegionCode", "regionCode",
		"The <code>regionCode</code> parameter specifies an invalid region code.")
}

func errPageToken() *apiError {
	return errParameter("invalidPageToken", "pageToken",
		"The request specifies an invalid page token.")
}

func errNoChart() *apiError {
	return &apiError{Code: http.StatusNotFound, Domain: "youtube.video",
		Reason: "videoChartNotFound", Param: "chart",
		Message: "The requested video chart is not supported or is not available."}
}

func errUnknownPart() *apiError {
	return &apiError{Code: http.StatusBadRequest, Domain: "youtube.part", Reason: "unknownPart",
		Param: "part", Message: "'{0}'"}
}
