package standin

import (
	"fmt"
	"net/http"
	"strconv"
)

// consumer is the project of every key of the stand-in.
const consumer = "000000000000"

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

func newError(code int, domain, reason, message string) *apiError {
	return &apiError{Code: code, Message: message,
		Errors: []errorItem{{Message: message, Domain: domain, Reason: reason}}}
}

// blaming names the invalid parameter.
func (e *apiError) blaming(parameter string) *apiError {
	if parameter != "" {
		e.Errors[0].Location, e.Errors[0].LocationType = parameter, "parameter"
	}
	return e
}

// rpc turns it into an error of Google's front end, with a google.rpc code.
func (e *apiError) rpc(details ...any) *apiError {
	e.Status = map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED",
		403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}[e.Code]
	e.Details = details
	return e
}

func errorInfo(reason string, metadata map[string]string) object {
	metadata["service"] = "youtube.googleapis.com"
	return object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
		"domain": "googleapis.com", "metadata": metadata}
}

// ofConsumer returns an ErrorInfo that only names the project.
func ofConsumer(reason string) object {
	return errorInfo(reason, map[string]string{"consumer": "projects/" + consumer})
}

func errQuotaExceeded() *apiError {
	return newError(http.StatusForbidden, "youtube.quota", "quotaExceeded",
		"The request cannot be completed because you have exceeded your "+
			`<a href="/youtube/v3/getting-started#quota">quota</a>.`)
}

func errDailyLimitOld() *apiError {
	return newError(http.StatusForbidden, "usageLimits", "dailyLimitExceeded",
		"Daily Limit Exceeded. The quota will be reset at midnight Pacific Time (PT). "+
			"You may monitor your quota usage and adjust limits in the API Console.")
}

// errDayExhausted returns a bucket's error when its day is used up: a 403 for the default bucket,
// a 429 for the narrow ones.
func errDayExhausted(bucket string, limit int64) *apiError {
	if bucket == "default" {
		return errQuotaExceeded()
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
	message := fmt.Sprintf("Quota exceeded for quota metric '%s' and limit '%s per %s' of service "+
		"'youtube.googleapis.com' for consumer 'project_number:%s'.", name[0], name[0], per,
		consumer)
	return newError(http.StatusTooManyRequests, "global", "rateLimitExceeded", message).
		rpc(errorInfo("RATE_LIMIT_EXCEEDED", map[string]string{
			"quota_limit":       name[1] + suffix,
			"quota_unit":        unit,
			"quota_metric":      "youtube.googleapis.com/" + bucket,
			"quota_location":    "global",
			"quota_limit_value": strconv.FormatInt(limit, 10),
			"consumer":          "projects/" + consumer,
		}))
}

func errRateBare() *apiError {
	return newError(http.StatusTooManyRequests, "usageLimits", "rateLimitExceeded",
		"Rate Limit Exceeded")
}

func errKeyMissing() *apiError {
	return newError(http.StatusForbidden, "global", "forbidden",
		"The request is missing a valid API key.").rpc()
}

func errKeyInvalid() *apiError {
	return newError(http.StatusBadRequest, "global", "badRequest",
		"API key not valid. Please pass a valid API key.").
		rpc(errorInfo("API_KEY_INVALID", map[string]string{}))
}

func errKeyBlocked(m method) *apiError {
	return newError(http.StatusForbidden, "global", "forbidden",
		"Requests to this API youtube method "+m.id+" are blocked.").
		rpc(ofConsumer("API_KEY_SERVICE_BLOCKED"))
}

func errNotConfigured() *apiError {
	const console = "https://console.developers.google.com"
	url := console + "/apis/api/youtube.googleapis.com/overview?project=" + consumer
	help := object{"@type": "type.googleapis.com/google.rpc.Help",
		"links": []any{map[string]string{
			"description": "Google developers console API activation", "url": url}}}
	e := newError(http.StatusForbidden, "usageLimits", "accessNotConfigured",
		"YouTube Data API v3 has not been used in project "+consumer+
			" before or it is disabled. Enable it by visiting "+url+" then retry. "+
			"If you enabled this API recently, wait a few minutes for the action to propagate "+
			"to our systems and retry.").rpc(help, ofConsumer("SERVICE_DISABLED"))
	e.Errors[0].ExtendedHelp = console
	return e
}

func errBackend(code int) *apiError {
	return newError(code, "global", "backendError", "Backend Error")
}

// errParameter returns a 400 that names a parameter.
func errParameter(reason, param, message string) *apiError {
	return newError(http.StatusBadRequest, "youtube.parameter", reason, message).blaming(param)
}

// errNoFilter returns the error of a call without any of its filters.
func errNoFilter(filters string) *apiError {
	return errParameter("missingRequiredParameter", "",
		"No filter selected. Expected one of: "+filters)
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
	return newError(http.StatusNotFound, "youtube.video", "videoChartNotFound",
		"The requested video chart is not supported or is not available.").blaming("chart")
}

func errUnknownPart() *apiError {
	return newError(http.StatusBadRequest, "youtube.part", "unknownPart", "'{0}'").blaming("part")
}

// errUpload returns a 400 of the upload endpoints.
func errUpload(message string) *apiError {
	return newError(http.StatusBadRequest, "global", "badRequest", message)
}
