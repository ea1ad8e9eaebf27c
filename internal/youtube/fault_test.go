package youtube_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/standin"
	"quotabudget/internal/youtube"
)

// classifyFile classifies a fixture. Its name begins with the status.
func classifyFile(t *testing.T, name string) youtube.Fault {
	t.Helper()
	body, err := os.ReadFile(name)
	must(t, err)
	return youtube.Classify(statusOf(name), body)
}

func statusOf(name string) int {
	status, _ := strconv.Atoi(filepath.Base(name)[:3])
	return status
}

func TestClassify(t *testing.T) {
	metrics := map[string]string{"429_day.json": "search_list",
		"429_day_unit_only.json": "video_insert", "429_minute.json": "default"}
	type row struct{ file, reason, text string }
	seen := map[string]bool{}
	check := func(want youtube.Kind, c row) {
		seen[c.file] = true
		f := classifyFile(t, filepath.Join("testdata", "errors", c.file))
		if f.Kind != want || f.Reason != c.reason || f.Message != c.text ||
			f.Status != statusOf(c.file) ||
			strings.TrimPrefix(f.Metric, "youtube.googleapis.com/") != metrics[c.file] {
			t.Errorf("%s: %+v\nwant %v %q %q", c.file, f, want, c.reason, c.text)
		}
		begins := f.WindowStart.UTC().Format(time.RFC3339) == "2026-11-01T07:00:00Z"
		if begins != (c.file == "429_day.json") {
			t.Errorf("%s: the window begins at %v", c.file, f.WindowStart)
		}
	}
	for want, rows := range map[youtube.Kind][]row{
		youtube.Exhausted: {
			{"403_quotaExceeded.json", "quotaExceeded", "You have used up your quota & more."},
			{"403_dailyLimitExceeded.json", "dailyLimitExceeded", "The daily limit is spent."},
			{"429_day.json", "RATE_LIMIT_EXCEEDED",
				"Quota exceeded for metric 'Searches' and limit 'Searches per day'."},
			{"429_day_words_only.json", "rateLimitExceeded",
				"Quota exceeded for metric 'Uploads' and limit 'Uploads per day'."},
			{"429_day_unit_only.json", "RATE_LIMIT_EXCEEDED", "Too many."},
		},
		youtube.Throttled: {
			{"429_minute.json", "RATE_LIMIT_EXCEEDED",
				"Quota exceeded for metric 'Queries' and limit 'Queries per minute'."},
			{"429_minute_says_per_day.json", "RATE_LIMIT_EXCEEDED",
				"1,000 per minute, 10,000 per day"},
			{"429_no_metric.json", "RATE_LIMIT_EXCEEDED", "Slow down."},
			{"429_bare.json", "rateLimitExceeded", "Rate limit exceeded"},
			{"429_cut.json", "", ""},
			{"403_userRateLimitExceeded.json", "userRateLimitExceeded", "Too fast for one user"},
			{"403_rateLimitExceeded.json", "rateLimitExceeded", "Too fast"},
		},
		youtube.BadCredential: {
			{"400_API_KEY_INVALID.json", "API_KEY_INVALID", "This key is no key."},
			{"400_key_words_only.json", "badRequest", "API key not valid. Ask for another."},
			{"400_key_expired.json", "badRequest", "API key expired. Ask for another."},
			{"400_keyInvalid.json", "keyInvalid", "Bad request"},
			{"403_no_key.json", "forbidden", "There is no key."},
			{"403_API_KEY_SERVICE_BLOCKED.json", "API_KEY_SERVICE_BLOCKED",
				"This key may not call that."},
			{"403_accessNotConfigured.json", "accessNotConfigured",
				"The API is off. Visit https://example.test/enable to turn it on."},
			{"403_SERVICE_DISABLED.json", "SERVICE_DISABLED", "The API is off."},
			{"401_authError.json", "authError", "Who are you?"},
			{"400_odd_types.json", "API_KEY_INVALID", ""},
		},
		youtube.BadRegion: {
			{"400_invalidRegionCode.json", "invalidRegionCode", "The regionCode is none."},
			{"400_array.json", "invalidRegionCode", "No such region."},
		},
		youtube.NoChart: {
			{"404_videoChartNotFound.json", "videoChartNotFound", "No such chart."},
			{"400_videoChartNotFound.json", "videoChartNotFound", "No such chart."},
			{"404_notFound.json", "notFound", "Nothing is here."},
		},
		youtube.Permanent: {
			{"404_videoNotFound.json", "videoNotFound", "No such video."},
			{"403_resource_forbidden.json", "forbidden", "Not yours."},
			{"404_page.html", "", "Error 404"},
			{"400_null.json", "", ""},
			{"400_empty.txt", "", ""},
			{"400_oauth.json", "invalid_grant", ""},
		},
		youtube.BadPageToken: {
			{"400_invalidPageToken.json", "invalidPageToken", "No such page."},
		},
		youtube.Transient: {
			{"500_backendError.json", "backendError", "Something broke"},
			{"503_backendError.json", "backendError", "Something broke"},
			{"500_null.json", "", ""},
			{"500_page.html", "", "Error 500 (Server <Error>)"},
			{"502_text.txt", "", "bad gateway [31m behind the proxy"},
			{"403_cut.json", "", ""},
		},
	} {
		for _, c := range rows {
			check(want, c)
		}
	}
	files, _ := filepath.Glob(filepath.Join("testdata", "errors", "*"))
	for _, file := range files {
		if !seen[filepath.Base(file)] {
			t.Errorf("%s is not in the table", file)
		}
	}
}

// TestClassifyByStatusOnlyWhereTheBodyIsSilent: an exhausted quota keeps its kind under any
// status. The status decides only if the body has no known word.
func TestClassifyByStatusOnlyWhereTheBodyIsSilent(t *testing.T) {
	for status, want := range map[int]youtube.Kind{
		302: youtube.Permanent, 400: youtube.Permanent, 401: youtube.BadCredential,
		403: youtube.Permanent, 404: youtube.Permanent, 429: youtube.Throttled, 500: youtube.Transient, 502: youtube.Transient,
		503: youtube.Transient, 504: youtube.Transient,
	} {
		if got := youtube.Classify(status, nil).Kind; got != want {
			t.Errorf("%d without a body is %v, want %v", status, got, want)
		}
		spent := `{"error":{"errors":[{"reason":"quotaExceeded"}]}}`
		if got := youtube.Classify(status, []byte(spent)).Kind; got != youtube.Exhausted {
			t.Errorf("%d quotaExceeded is %v", status, got)
		}
	}
}

func TestMessagesAreShortAndPlain(t *testing.T) {
	long := strings.Repeat("<b>mooré</b> ", 5000)
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": long}})
	f := youtube.Classify(400, body)
	if n := len([]rune(f.Message)); n > 301 || strings.Contains(f.Message, "<") {
		t.Errorf("%d letters: %.80s", n, f.Message)
	}
	key := "AIza" + strings.Repeat("x", 35)
	if f := youtube.Classify(400, []byte("no such key: "+key)); strings.Contains(f.Message, key) {
		t.Errorf("the message holds a key: %s", f.Message)
	}
}

// TestRecordedErrors: the client classifies each recorded error as the table says. A file's name
// begins with the status and describes the error.
func TestRecordedErrors(t *testing.T) {
	dir := standin.SharedData(os.Getenv("QUOTA_SHARED_DATA"), "recorded", "errors")
	if dir == "" {
		return
	}
	listed := map[string]youtube.Kind{}
	for kind, names := range map[youtube.Kind]string{
		youtube.Exhausted: `
			403_quotaExceeded_current 403_quotaExceeded_old 403_dailyLimitExceeded_old
			429_rateLimitExceeded_daily_search_2026 429_rateLimitExceeded_daily_uploads_2026`,
		youtube.Throttled: `
			429_rateLimitExceeded_usageLimits`,
		youtube.Transient: `
			500_backendError 500_null_message 503_backendError`,
		youtube.BadCredential: `
			400_apiKeyInvalid_details_2022 400_apiKeyInvalid_nodetails_2021 400_keyInvalid_old
			401_authError_2020 401_authError_2022 403_API_KEY_SERVICE_BLOCKED_2022
			403_accessNotConfigured_2020 403_accessNotConfigured_2024 403_apiKeyMissing_2022`,
		youtube.BadRegion: `
			400_invalidRegionCode_2022 400_invalidRegionCode_VE_2015`,
		youtube.BadPageToken: `
			400_invalidPageToken`,
		youtube.Permanent: `
			400_html_google_frontend_2022 400_html_short_2021 400_invalid_fields_selector_2016
			400_missingRequiredParameter_2020 400_unknownPart_2020 400_unknownPart_2022
			403_permission_SERVICE_UNAVAILABLE 403_playlistItemsNotAccessible_2022
			403_subscriptionForbidden_2022 403_video_forbidden_2022
			404_commentThread_videoNotFound_2016 404_html_wrong_path_2024 404_videoNotFound_2020`,
	} {
		for name := range strings.FieldsSeq(names) {
			listed[name] = kind
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded errors: %v", err)
	}
	for _, name := range files {
		base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		want, ok := listed[base]
		f := classifyFile(t, name)
		if !ok || f.Kind != want {
			t.Errorf("%s is %+v, want %v (listed: %v)", base, f, want, ok)
		}
		if strings.Contains(f.Message, "<") || len(f.Message) > 1000 {
			t.Errorf("%s: message %q", base, f.Message)
		}
		if search := strings.HasSuffix(base, "daily_search_2026"); search &&
			f.Metric != "youtube.googleapis.com/search_list" {
			t.Errorf("%s names metric %q", base, f.Metric)
		}
	}
}

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
