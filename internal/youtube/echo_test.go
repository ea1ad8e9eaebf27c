package youtube_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"quotabudget/internal/youtube"
)

// said returns an error body with the message and a reason, unless that is "".
func said(message, reason string) []byte {
	type item struct {
		Message string `json:"message"`
		Domain  string `json:"domain"`
		Reason  string `json:"reason"`
	}
	body := map[string]any{"message": message}
	if reason != "" {
		body["errors"] = []item{{message, "youtube.parameter", reason}}
	}
	data, _ := json.Marshal(map[string]any{"error": body})
	return data
}

// echoed lists words that a client can choose and the upstream may repeat: a region, a page
// token, an ID, a search.
func echoed() []string {
	return []string{
		"units per day", "Quota exceeded for limit 'Queries PER DAY'", "quotaExceeded",
		"dailyLimitExceeded", "API key not valid. Please pass a valid API key.",
		"API key expired", "1/d/{project}", "rateLimitExceeded",
		`","reason":"quotaExceeded`, "<title>per day</title>", "invalidRegionCode",
	}
}

// TestMessagesDecideNothing: text repeated in a message does not change the kind of an error that
// gives a reason.
func TestMessagesDecideNothing(t *testing.T) {
	for _, reason := range []string{
		"invalidParameter", "invalidRegionCode", "invalidPageToken", "missingRequiredParameter",
		"videoNotFound", "unknownPart", "forbidden", "videoChartNotFound", "backendError",
		"SERVICE_UNAVAILABLE",
	} {
		for _, status := range []int{400, 401, 403, 404, 405, 409, 412, 413, 429, 500, 503} {
			want := youtube.Classify(status, said("?", reason)).Kind
			for _, words := range echoed() {
				for _, message := range []string{words, "Invalid value at 'region_code': \"" +
					words + "\"", words + " is not valid."} {
					if got := youtube.Classify(status, said(message, reason)); got.Kind != want {
						t.Errorf("%d %s %q is %v, without the words %v", status, reason, message,
							got.Kind, want)
					}
				}
			}
		}
	}
}

// TestWordsWithoutReason: without a reason, words count in the responses in which the upstream
// writes about quota and keys.
func TestWordsWithoutReason(t *testing.T) {
	for _, status := range []int{400, 401, 402, 404, 405, 409, 410, 412, 413, 500, 503} {
		for _, words := range echoed() {
			for _, body := range [][]byte{said(words, ""), []byte(words),
				[]byte(`{"error":"` + strings.ReplaceAll(words, `"`, "") + `"}`)} {
				got := youtube.Classify(status, body)
				key := status == 400 && strings.HasPrefix(words, "API key") && body[0] == '{' &&
					strings.Contains(string(body), "message")
				if got.Kind == youtube.Exhausted || got.Kind == youtube.BadCredential &&
					status != 401 && !key {
					t.Errorf("%d %s is %v", status, body, got.Kind)
				}
			}
		}
	}
}

// TestReasonsInOddPlaces: a reason counts only where the API puts its reasons.
func TestReasonsInOddPlaces(t *testing.T) {
	const info = `{"error":{"details":[{"@type":%q,"domain":%q,"reason":%q,` +
		`"metadata":{"service":%q,"quota_unit":"1/d/{project}"}}]}}`
	const google, us = "type.googleapis.com/google.rpc.ErrorInfo", "youtube.googleapis.com"
	detail := func(kind, domain, reason, service string) string {
		return fmt.Sprintf(info, kind, domain, reason, service)
	}
	for _, c := range []struct {
		status int
		body   string
		want   youtube.Kind
	}{
		{429, detail(google, "googleapis.com", "RATE_LIMIT_EXCEEDED", us), youtube.Exhausted},
		{429, detail(google, us, "RATE_LIMIT_EXCEEDED", us), youtube.Exhausted},
		{429, detail(google, "googleapis.com", "RATE_LIMIT_EXCEEDED", "translate.googleapis.com"),
			youtube.Throttled},
		{403, detail(google, "example.com", "RATE_LIMIT_EXCEEDED", us), youtube.Permanent},
		{403, detail(google, "googleapis.com.example.com", "API_KEY_INVALID", us), youtube.Permanent},
		{403, detail(google, "example.com", "API_KEY_INVALID", us), youtube.Permanent},
		{403, detail("type.googleapis.com/google.rpc.BadRequest", "googleapis.com", "quotaExceeded",
			us), youtube.Permanent},
		{403, `{"error":{"errors":[{"metadata":{"quota_unit":"1/d/{project}"}}]}}`,
			youtube.Permanent},
		{400, `{"error":"quotaExceeded"}`, youtube.Permanent},
		{400, `{"reason":"quotaExceeded","errors":[{"reason":"quotaExceeded"}]}`, youtube.Permanent},
		{400, `{"error":{"errors":[{"location":"quotaExceeded","reason":"invalid","message":"quotaExceeded"}]}}`, youtube.Permanent},
		{400, `{"error":{"errors":[{"reason":"quotaExceeded"}]},"error":{"errors":[{"reason":"invalid"}]}}`, youtube.Permanent},
		{400, `{"error":{"errors":[{"reason":"invalid"}]},"Error":{"errors":[{"reason":"quotaExceeded"}]}}`, youtube.Permanent},
		{403, `{"error":{"message":"too many per day","message":""}}`, youtube.Permanent},
		{403, strings.Repeat(`{"error":`, 100) + `{"errors":[{"reason":"quotaExceeded"}]}` +
			strings.Repeat("}", 100), youtube.Permanent},
		// too deep for any parser, so treated as cut
		{403, strings.Repeat("[", 20000) + strings.Repeat("]", 20000), youtube.Transient},
	} {
		if got := youtube.Classify(c.status, []byte(c.body)); got.Kind != c.want {
			t.Errorf("%d %.200s is %v, want %v", c.status, c.body, got.Kind, c.want)
		}
	}
}

// TestLongError: an error that is cut for its length is classified by its status, and not
// retried.
func TestLongError(t *testing.T) {
	long := []byte(`{"error":{"errors":[{"reason":"quotaExceeded"}],"message":"` +
		strings.Repeat("per day ", 1<<17) + `"}}`)
	for status, want := range map[int]youtube.Kind{
		400: youtube.Permanent, 403: youtube.Permanent, 429: youtube.Throttled, 500: youtube.Transient,
	} {
		if got := youtube.Classify(status, long[:1<<20]); got.Kind != want ||
			!strings.Contains(got.Message, "longer than") {
			t.Errorf("%d is %+v", status, got)
		}
	}
}
