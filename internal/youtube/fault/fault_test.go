package fault_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/youtube/fault"
)

// classifyFile reads a fixture, whose name begins with its status.
func classifyFile(t *testing.T, name string) fault.Fault {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return fault.Classify(statusOf(name), body)
}

func statusOf(name string) int {
	status, _ := strconv.Atoi(filepath.Base(name)[:3])
	return status
}

func TestClassify(t *testing.T) {
	const (
		metric = "youtube.googleapis.com/"
		start  = "2026-11-01T07:00:00Z"
	)
	seen := map[string]bool{}
	for _, c := range []struct {
		file   string
		kind   fault.Kind
		reason string
		metric string
		text   string // of the message
	}{
		{"403_quotaExceeded.json", fault.Exhausted, "quotaExceeded", "",
			"You have used up your quota & more."},
		{"403_dailyLimitExceeded.json", fault.Exhausted, "dailyLimitExceeded", "",
			"The daily limit is spent."},
		{"429_day.json", fault.Exhausted, "RATE_LIMIT_EXCEEDED", metric + "search_list",
			"Quota exceeded for metric 'Searches' and limit 'Searches per day'."},
		{"429_day_words_only.json", fault.Exhausted, "rateLimitExceeded", "",
			"Quota exceeded for metric 'Uploads' and limit 'Uploads per day'."},
		{"429_day_unit_only.json", fault.Exhausted, "RATE_LIMIT_EXCEEDED", metric + "video_insert",
			"Too many."},
		{"429_minute.json", fault.Throttled, "RATE_LIMIT_EXCEEDED", metric + "default",
			"Quota exceeded for metric 'Queries' and limit 'Queries per minute'."},
		{"429_minute_says_per_day.json", fault.Throttled, "RATE_LIMIT_EXCEEDED", "",
			"1,000 per minute, 10,000 per day"},
		{"429_no_metric.json", fault.Throttled, "RATE_LIMIT_EXCEEDED", "", "Slow down."},
		{"429_bare.json", fault.Throttled, "rateLimitExceeded", "", "Rate limit exceeded"},
		{"429_cut.json", fault.Throttled, "", "", ""},
		{"403_userRateLimitExceeded.json", fault.Throttled, "userRateLimitExceeded", "",
			"Too fast for one user"},
		{"403_rateLimitExceeded.json", fault.Throttled, "rateLimitExceeded", "", "Too fast"},
		{"400_API_KEY_INVALID.json", fault.BadCredential, "API_KEY_INVALID", "",
			"This key is no key."},
		{"400_key_words_only.json", fault.BadCredential, "badRequest", "",
			"API key not valid. Ask for another."},
		{"400_key_expired.json", fault.BadCredential, "badRequest", "",
			"API key expired. Ask for another."},
		{"400_keyInvalid.json", fault.BadCredential, "keyInvalid", "", "Bad request"},
		{"403_no_key.json", fault.BadCredential, "forbidden", "", "There is no key."},
		{"403_API_KEY_SERVICE_BLOCKED.json", fault.BadCredential, "API_KEY_SERVICE_BLOCKED", "",
			"This key may not call that."},
		{"403_accessNotConfigured.json", fault.BadCredential, "accessNotConfigured", "",
			"The API is off. Visit https://example.test/enable to turn it on."},
		{"403_SERVICE_DISABLED.json", fault.BadCredential, "SERVICE_DISABLED", "",
			"The API is off."},
		{"401_authError.json", fault.BadCredential, "authError", "", "Who are you?"},
		{"400_invalidRegionCode.json", fault.BadRegion, "invalidRegionCode", "",
			"The regionCode is none."},
		{"400_array.json", fault.BadRegion, "invalidRegionCode", "", "No such region."},
		{"404_videoChartNotFound.json", fault.NoChart, "videoChartNotFound", "", "No such chart."},
		{"400_videoChartNotFound.json", fault.NoChart, "videoChartNotFound", "", "No such chart."},
		{"404_notFound.json", fault.NoChart, "notFound", "", "Nothing is here."},
		{"404_videoNotFound.json", fault.Permanent, "videoNotFound", "", "No such video."},
		{"400_invalidPageToken.json", fault.BadPageToken, "invalidPageToken", "", "No such page."},
		{"403_resource_forbidden.json", fault.Permanent, "forbidden", "", "Not yours."},
		{"500_backendError.json", fault.Transient, "backendError", "", "Something broke"},
		{"503_backendError.json", fault.Transient, "backendError", "", "Something broke"},
		{"500_null.json", fault.Transient, "", "", ""},
		{"500_page.html", fault.Transient, "", "", "Error 500 (Server <Error>)"},
		{"502_text.txt", fault.Transient, "", "", "bad gateway [31m behind the proxy"},
		{"403_cut.json", fault.Transient, "", "", ""},
		{"404_page.html", fault.Permanent, "", "", "Error 404"},
		{"400_null.json", fault.Permanent, "", "", ""},
		{"400_empty.txt", fault.Permanent, "", "", ""},
		{"400_oauth.json", fault.Permanent, "invalid_grant", "", ""},
		{"400_odd_types.json", fault.BadCredential, "API_KEY_INVALID", "", ""},
	} {
		seen[c.file] = true
		f := classifyFile(t, filepath.Join("testdata", "errors", c.file))
		if f.Kind != c.kind || f.Reason != c.reason || f.Metric != c.metric ||
			f.Message != c.text || f.Status != statusOf(c.file) {
			t.Errorf("%s: %+v\nwant %v %q %q %q", c.file, f, c.kind, c.reason, c.metric, c.text)
		}
		begins := f.WindowStart.UTC().Format(time.RFC3339) == start
		if begins != (c.file == "429_day.json") {
			t.Errorf("%s: the window begins at %v", c.file, f.WindowStart)
		}
	}
	files, _ := filepath.Glob(filepath.Join("testdata", "errors", "*"))
	for _, file := range files {
		if !seen[filepath.Base(file)] {
			t.Errorf("%s is not in the table", file)
		}
	}
}

// A quota that is spent keeps its kind whatever the status; without the body's word, the status
// decides.
func TestClassifyByStatusOnlyWhereTheBodyIsSilent(t *testing.T) {
	for status, want := range map[int]fault.Kind{
		302: fault.Permanent, 400: fault.Permanent, 401: fault.BadCredential, 403: fault.Permanent,
		404: fault.Permanent, 429: fault.Throttled, 500: fault.Transient, 502: fault.Transient,
		503: fault.Transient, 504: fault.Transient,
	} {
		if got := fault.Classify(status, nil).Kind; got != want {
			t.Errorf("%d without a body is %v, want %v", status, got, want)
		}
		spent := `{"error":{"errors":[{"reason":"quotaExceeded"}]}}`
		if got := fault.Classify(status, []byte(spent)).Kind; got != fault.Exhausted {
			t.Errorf("%d quotaExceeded is %v", status, got)
		}
	}
}

func TestMessagesAreShortAndPlain(t *testing.T) {
	long := strings.Repeat("<b>mooré</b> ", 5000)
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": long}})
	f := fault.Classify(400, body)
	if n := len([]rune(f.Message)); n > 301 || strings.Contains(f.Message, "<") {
		t.Errorf("%d letters: %.80s", n, f.Message)
	}
	key := "AIza" + strings.Repeat("x", 35)
	if f := fault.Classify(400, []byte("no such key: "+key)); strings.Contains(f.Message, key) {
		t.Errorf("the message holds a key: %s", f.Message)
	}
}
