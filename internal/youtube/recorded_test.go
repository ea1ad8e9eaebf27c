package youtube_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quotabudget/internal/youtube"
)

// recorded is the folder of answers recorded from the real upstream, which lies beside the source tree on some machines, or "".
func recorded(t *testing.T) string {
	t.Helper()
	if root := os.Getenv("QUOTA_SHARED_DATA"); root != "" {
		return filepath.Join(root, "recorded")
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if data := filepath.Join(dir, "shared", "data", "recorded"); isDir(data) {
			return data
		}
	}
	t.Log("recorded answers are not here: only the fixtures of the tree are read")
	return ""
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// recordedKinds is what each recorded error means; the rest of a file's name says what it is.
func recordedKinds() map[string]youtube.Kind {
	return map[string]youtube.Kind{
		"403_quotaExceeded_current":                youtube.Exhausted,
		"403_quotaExceeded_old":                    youtube.Exhausted,
		"403_dailyLimitExceeded_old":               youtube.Exhausted,
		"429_rateLimitExceeded_daily_search_2026":  youtube.Exhausted,
		"429_rateLimitExceeded_daily_uploads_2026": youtube.Exhausted,
		"429_rateLimitExceeded_usageLimits":        youtube.Throttled,
		"500_backendError":                         youtube.Transient,
		"500_null_message":                         youtube.Transient,
		"503_backendError":                         youtube.Transient,
		"400_apiKeyInvalid_details_2022":           youtube.BadCredential,
		"400_apiKeyInvalid_nodetails_2021":         youtube.BadCredential,
		"400_keyInvalid_old":                       youtube.BadCredential,
		"401_authError_2020":                       youtube.BadCredential,
		"401_authError_2022":                       youtube.BadCredential,
		"403_API_KEY_SERVICE_BLOCKED_2022":         youtube.BadCredential,
		"403_accessNotConfigured_2020":             youtube.BadCredential,
		"403_accessNotConfigured_2024":             youtube.BadCredential,
		"403_apiKeyMissing_2022":                   youtube.BadCredential,
		"400_invalidRegionCode_2022":               youtube.BadRegion,
		"400_invalidRegionCode_VE_2015":            youtube.BadRegion,
		"400_invalidPageToken":                     youtube.BadPageToken,
		"400_html_google_frontend_2022":            youtube.Permanent,
		"400_html_short_2021":                      youtube.Permanent,
		"400_invalid_fields_selector_2016":         youtube.Permanent,
		"400_missingRequiredParameter_2020":        youtube.Permanent,
		"400_unknownPart_2020":                     youtube.Permanent,
		"400_unknownPart_2022":                     youtube.Permanent,
		"403_permission_SERVICE_UNAVAILABLE":       youtube.Permanent,
		"403_playlistItemsNotAccessible_2022":      youtube.Permanent,
		"403_subscriptionForbidden_2022":           youtube.Permanent,
		"403_video_forbidden_2022":                 youtube.Permanent,
		"404_commentThread_videoNotFound_2016":     youtube.Permanent,
		"404_html_wrong_path_2024":                 youtube.Permanent,
		"404_videoNotFound_2020":                   youtube.Permanent,
	}
}

func TestRecordedErrors(t *testing.T) {
	dir := recorded(t)
	if dir == "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "errors", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded errors: %v", err)
	}
	for _, name := range files {
		base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		want, ok := recordedKinds()[base]
		f := classifyFile(t, name)
		if !ok || f.Kind != want {
			t.Errorf("%s is %+v, want %v (listed: %v)", base, f, want, ok)
		}
		if strings.Contains(f.Message, "<") || len(f.Message) > 1000 {
			t.Errorf("%s: message %q", base, f.Message)
		}
	}
	if f := classifyFile(t, filepath.Join(dir, "errors", "429_rateLimitExceeded_daily_search_2026.json")); f.Metric != "youtube.googleapis.com/search_list" {
		t.Errorf("the daily search limit names metric %q", f.Metric)
	}
}

// The index says with which status each body came.
func TestRecordedStatuses(t *testing.T) {
	dir := recorded(t)
	if dir == "" {
		return
	}
	data, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index []struct {
		File   string `json:"file"`
		Status int    `json:"http_status"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		t.Fatal(err)
	}
	errors := 0
	for _, entry := range index {
		if !strings.HasPrefix(entry.File, "errors/") {
			continue
		}
		errors++
		if entry.Status != 0 && entry.Status != statusOf(t, entry.File) {
			t.Errorf("%s came with %d", entry.File, entry.Status)
		}
	}
	if errors != len(recordedKinds()) {
		t.Errorf("the index has %d errors, the table %d", errors, len(recordedKinds()))
	}
}

// replay answers every request with one body.
type replay []byte

func (b replay) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(b)), Request: r,
	}, nil
}

// Every recorded page of videos reads as its JSON says, counters and texts included.
func TestRecordedPages(t *testing.T) {
	dir := recorded(t)
	if dir == "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "ok", "videos_*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded pages: %v", err)
	}
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		comparePage(t, filepath.Base(name), body)
	}
}

func comparePage(t *testing.T, name string, body []byte) {
	t.Helper()
	client, err := youtube.New(context.Background(), "https://upstream.test", replay(body))
	if err != nil {
		t.Fatal(err)
	}
	page, err := client.Chart(context.Background(), youtube.ChartRequest{Region: "US"})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var plain struct {
		NextPageToken string
		Items         []struct {
			ID         string
			Snippet    struct{ Title, Description, ChannelTitle string }
			Statistics map[string]string
		}
	}
	if err := json.Unmarshal(body, &plain); err != nil {
		t.Fatal(err)
	}
	if len(page.Videos) != len(plain.Items) || page.Next != plain.NextPageToken {
		t.Errorf("%s: %d videos, next %q; want %d, %q", name, len(page.Videos), page.Next, len(plain.Items), plain.NextPageToken)
		return
	}
	for i, item := range plain.Items {
		v := page.Videos[i]
		if v.ID != item.ID || v.Title != item.Snippet.Title || v.Description != item.Snippet.Description || v.ChannelTitle != item.Snippet.ChannelTitle {
			t.Errorf("%s: video %d is %+v, want %+v", name, i, v, item)
		}
		for key, got := range map[string]*int64{"viewCount": v.Views, "likeCount": v.Likes, "commentCount": v.Comments} {
			if want, ok := item.Statistics[key]; written(got) != want || (got != nil) != ok {
				t.Errorf("%s: video %s has %s %s, want %q", name, v.ID, key, written(got), want)
			}
		}
	}
}
