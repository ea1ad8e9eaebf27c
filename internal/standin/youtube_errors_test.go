package standin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/api/googleapi"
)

// metadata returns the metadata of an error's ErrorInfo.
func metadata(t *testing.T, e *googleapi.Error) map[string]any {
	t.Helper()
	for _, d := range e.Details {
		if info, ok := d.(map[string]any); ok &&
			strings.HasSuffix(info["@type"].(string), "ErrorInfo") {
			return info["metadata"].(map[string]any)
		}
	}
	t.Fatalf("no ErrorInfo in %s", e.Body)
	return nil
}

// errorOf returns the Google client's error for the response of a URL.
func errorOf(t *testing.T, url string) error {
	t.Helper()
	status, body := status(t, url)
	return googleapi.CheckResponse(&http.Response{StatusCode: status,
		Body: io.NopCloser(strings.NewReader(body))})
}

func TestErrors(t *testing.T) {
	url := start(t, &YouTube{Charts: Generator{Totals: map[string]int{"AU": 0}}.Charts()})
	const chart = "videos?part=id&chart=mostPopular"
	for path, want := range map[string]struct {
		code   int
		reason string
	}{
		chart + "&regionCode=XX":                       {400, "invalidRegionCode"},
		chart + "&regionCode=AU":                       {404, "videoChartNotFound"},
		chart + "&videoCategoryId=44":                  {404, "videoChartNotFound"},
		chart + "&pageToken=CDIQA":                     {400, "invalidPageToken"},
		chart + "&maxResults=51":                       {400, "invalidParameter"},
		chart + "&maxResults=0":                        {400, "invalidParameter"},
		"videos?chart=mostPopular":                     {400, "missingRequiredParameter"},
		"videos?part=soul&id=x":                        {400, "unknownPart"},
		"videos?part=id":                               {400, "missingRequiredParameter"},
		"videos?part=id" + strings.Repeat("&id=x", 51): {400, "invalidFilters"},
		chart + "&id=x":                                {400, "incompatibleParameters"},
		"videoCategories?part=id&regionCode=1":         {400, "invalidRegionCode"},
	} {
		wantError(t, path, errorOf(t, url+"/youtube/v3/"+path), want.code, want.reason)
	}
	if status, body := status(t, url+"/youtube/v3search"); status != 404 ||
		!strings.HasPrefix(body, "<!DOCTYPE html>") {
		t.Errorf("an unknown path: %d %s", status, body)
	}
}

// TestRecordedErrors compares the bodies of errors with recorded ones, if those are installed.
func TestRecordedErrors(t *testing.T) {
	data := SharedData(os.Getenv("QUOTA_SHARED_DATA"), "recorded", "errors")
	for file, name := range map[string]string{
		"403_quotaExceeded_current.json":               "quotaExceeded",
		"403_dailyLimitExceeded_old.json":              "dailyLimitExceeded",
		"429_rateLimitExceeded_daily_search_2026.json": "",
		"429_rateLimitExceeded_usageLimits.json":       "rateLimitExceeded bare",
		"403_apiKeyMissing_2022.json":                  "forbidden no key",
		"400_apiKeyInvalid_details_2022.json":          "badRequest key",
		"403_accessNotConfigured_2024.json":            "accessNotConfigured",
		"400_invalidPageToken.json":                    "invalidPageToken",
		"400_invalidRegionCode_2022.json":              "invalidRegionCode",
		"400_unknownPart_2022.json":                    "unknownPart",
		"500_backendError.json":                        "backendError 500",
		"503_backendError.json":                        "backendError 503",
	} {
		recorded, err := os.ReadFile(filepath.Join(data, file))
		if data == "" {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		c := &call{s: &Server{name: youTubeName, api: api{spec: specs()[youTubeName]}}, w: w,
			r: httptest.NewRequest(http.MethodGet, "/", nil)}
		c.serve(func(c *call) {
			if name == "" {
				c.failRate("search_list", "day", 0)
			}
			c.fail(name, nil)
		})
		var want, got any
		must(t, errors.Join(json.Unmarshal(recorded, &want),
			json.Unmarshal(w.Body.Bytes(), &got)))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", file, w.Body, recorded)
		}
	}
}

// TestRecordedShapes checks that lists have the same members as recorded ones.
func TestRecordedShapes(t *testing.T) {
	data := SharedData(os.Getenv("QUOTA_SHARED_DATA"), "recorded", "ok")
	if data == "" {
		return
	}
	url := start(t, &YouTube{})
	for _, test := range []struct{ path, pattern, mayLack string }{
		{"videos?part=snippet,contentDetails,statistics&chart=mostPopular&regionCode=KR",
			"videos_mostPopular_KR*", ".items[].contentDetails.regionRestriction"},
		{"search?part=snippet&maxResults=25&q=a", "search_KR*", "-"},
		{"videoCategories?part=snippet&regionCode=US", "videoCategories_by_region*", "-"},
		{"i18nRegions?part=snippet", "i18nRegions*", "-"},
		{"videos?part=statistics,status&id=" + defaultCharts().Chart("US", 1)[0].ID,
			"videos_by_id_50_statistics*", "-"},
	} {
		files, err := filepath.Glob(filepath.Join(data, test.pattern))
		if err != nil || len(files) != 1 {
			t.Fatal(test.pattern, files, err)
		}
		recorded, err := os.ReadFile(files[0])
		must(t, err)
		_, body := status(t, url+"/youtube/v3/"+test.path)
		want, got := shape(t, string(recorded)), shape(t, body)
		for path, kind := range want {
			if got[path] != kind && !strings.HasPrefix(path, test.mayLack) {
				t.Errorf("%s: %s is %q, recorded as %q", test.pattern, path, got[path], kind)
			}
		}
		for path, kind := range got {
			if want[path] == "" {
				t.Errorf("%s: %s (%s) is not recorded", test.pattern, path, kind)
			}
		}
	}
}

// shape returns the type of every member of a JSON text, by path.
func shape(t *testing.T, text string) map[string]string {
	t.Helper()
	var v any
	must(t, json.Unmarshal([]byte(text), &v))
	all := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		all[path] = reflect.TypeOf(v).String()
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				walk(path+"."+name, member)
			}
		case []any:
			for _, member := range v {
				walk(path+"[]", member)
			}
		}
	}
	walk("", v)
	return all
}
