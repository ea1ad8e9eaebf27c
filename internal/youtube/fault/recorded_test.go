package fault_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quotabudget/internal/youtube/fault"
	"quotabudget/internal/youtube/youtubetest"
)

// recordedKinds is what each recorded error means; the rest of a file's name says what it is.
func recordedKinds() map[string]fault.Kind {
	kinds := map[string]fault.Kind{}
	for kind, names := range map[fault.Kind]string{
		fault.Exhausted: `
			403_quotaExceeded_current 403_quotaExceeded_old 403_dailyLimitExceeded_old
			429_rateLimitExceeded_daily_search_2026 429_rateLimitExceeded_daily_uploads_2026`,
		fault.Throttled: `
			429_rateLimitExceeded_usageLimits`,
		fault.Transient: `
			500_backendError 500_null_message 503_backendError`,
		fault.BadCredential: `
			400_apiKeyInvalid_details_2022 400_apiKeyInvalid_nodetails_2021 400_keyInvalid_old
			401_authError_2020 401_authError_2022 403_API_KEY_SERVICE_BLOCKED_2022
			403_accessNotConfigured_2020 403_accessNotConfigured_2024 403_apiKeyMissing_2022`,
		fault.BadRegion: `
			400_invalidRegionCode_2022 400_invalidRegionCode_VE_2015`,
		fault.BadPageToken: `
			400_invalidPageToken`,
		fault.Permanent: `
			400_html_google_frontend_2022 400_html_short_2021 400_invalid_fields_selector_2016
			400_missingRequiredParameter_2020 400_unknownPart_2020 400_unknownPart_2022
			403_permission_SERVICE_UNAVAILABLE 403_playlistItemsNotAccessible_2022
			403_subscriptionForbidden_2022 403_video_forbidden_2022
			404_commentThread_videoNotFound_2016 404_html_wrong_path_2024 404_videoNotFound_2020`,
	} {
		for name := range strings.FieldsSeq(names) {
			kinds[name] = kind
		}
	}
	return kinds
}

func TestRecordedErrors(t *testing.T) {
	dir := youtubetest.SharedData(os.Getenv("QUOTA_SHARED_DATA"), "recorded")
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
	f := classifyFile(t, filepath.Join(dir, "errors", "429_rateLimitExceeded_daily_search_2026.json"))
	if f.Metric != "youtube.googleapis.com/search_list" {
		t.Errorf("the daily search limit names metric %q", f.Metric)
	}
}

// The index says with which status each body came.
func TestRecordedStatuses(t *testing.T) {
	dir := youtubetest.SharedData(os.Getenv("QUOTA_SHARED_DATA"), "recorded")
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
		if entry.Status != 0 && entry.Status != statusOf(entry.File) {
			t.Errorf("%s came with %d", entry.File, entry.Status)
		}
	}
	if errors != len(recordedKinds()) {
		t.Errorf("the index has %d errors, the table %d", errors, len(recordedKinds()))
	}
}
