package standin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/youtube/v3"
)

// client returns the real Google client of a server. It sends its key in a header.
func client(t *testing.T, url string) *youtube.Service {
	t.Helper()
	c, err := youtube.NewService(t.Context(), option.WithEndpoint(url+"/"), option.WithHTTPClient(
		&http.Client{Transport: withKey("k")}))
	must(t, err)
	return c
}

// wantError checks that err is an error of the API.
func wantError(t *testing.T, what string, err error, code int, reason string) *googleapi.Error {
	t.Helper()
	e, ok := errors.AsType[*googleapi.Error](err)
	if !ok || e.Code != code || len(e.Errors) != 1 || e.Errors[0].Reason != reason {
		t.Fatalf("%s: %v, want %d %s", what, err, code, reason)
	}
	return e
}

type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Goog-Api-Key", string(k))
	return http.DefaultTransport.RoundTrip(r)
}

const chartQuery = "/youtube/v3/videos?part=id&chart=mostPopular&regionCode="

// TestCredentials: a request needs a valid key or user's token; with Tokens set, every write
// needs a token.
func TestCredentials(t *testing.T) {
	keys := &YouTube{Keys: []string{"good"}}
	both := &YouTube{Keys: []string{"good"}, Tokens: []string{"user"}}
	urls := map[*YouTube]string{keys: start(t, keys), both: start(t, both)}
	for _, test := range []struct {
		server                  *YouTube
		verb, key, query, token string
		status                  int
	}{
		{keys, "GET", "", "", "", 403},
		{keys, "GET", "", "&key=", "", 403},
		{keys, "GET", "bad", "", "", 400},
		{keys, "GET", "good", "", "", 200},
		{keys, "GET", "", "&key=good", "", 200},
		{both, "GET", "", "", "user", 200},
		{both, "GET", "good", "", "user", 200},
		{both, "GET", "bad", "", "user", 400},
		{both, "GET", "good", "", "another", 401},
		{both, "GET", "good", "", "", 200},
		{both, "GET", "", "", "", 403},
		{both, "POST", "good", "", "", 401},
		{both, "POST", "", "", "another", 401},
		{both, "POST", "", "", "user", 200},
	} {
		bearer := strings.TrimSuffix("Bearer "+test.token, "Bearer ")
		r := get(t, urls[test.server], test.verb+" "+chartQuery+"US"+test.query,
			"X-Goog-Api-Key: "+test.key, "Authorization: "+bearer)
		if r.status != test.status {
			t.Errorf("%+v: status %d", test, r.status)
		}
	}
	c := keys.Counts()
	if c.Refused != 3 || c.KeyInURL != 2 || c.Units["default"] != 2 || c.Requests != 5 {
		t.Errorf("counts %+v", c)
	}
	if c := both.Counts(); c.Refused != 5 || c.Requests != 9 {
		t.Errorf("counts %+v", c)
	}
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := httptest.NewRequest(http.MethodGet, chartQuery+"US&key=k", nil)
		(&YouTube{Latency: time.Minute}).ServeHTTP(httptest.NewRecorder(), r)
		if d := time.Since(began); d != time.Minute {
			t.Errorf("answered after %v", d)
		}
	})
}

func TestControl(t *testing.T) {
	// half an hour before midnight in Los Angeles
	s := &YouTube{Now: func() time.Time { return time.Date(2026, 7, 2, 6, 30, 0, 0, time.UTC) }}
	url := start(t, s)
	const change, chart = "POST /standin/settings ", "GET " + chartQuery + "US"
	for _, step := range []struct {
		name, request string
		status        int
	}{
		{"a limit and a fault", change + `{"limits":{"default":2},"faults":["503@1"]}`, 200},
		{"the fault", chart, 503},
		{"the last unit", chart, 200},
		{"exhausted", chart, 403},
		{"an unknown key", change + `{"limit":1}`, 400},
		{"no JSON", change + `{`, 400},
		{"an unknown fault", change + `{"faults":["506@1"],"limits":{"default":9}}`, 400},
		{"an unknown duration", change + `{"advance":"1 day"}`, 400},
		{"still exhausted", chart, 403},
		{"a moment", change + `{"advance":"29m59s"}`, 200},
		{"the same day", chart, 403},
		{"midnight", change + `{"advance":"1s"}`, 200},
		{"the next day", chart, 200},
	} {
		if r := get(t, url, step.request); r.status != step.status {
			t.Errorf("%s: status %d, want %d: %s", step.name, r.status, step.status, r.body)
		}
	}
	var c YouTubeCounts
	status, body := status(t, url+"/standin/counts")
	if err := json.Unmarshal([]byte(body), &c); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	if c.Day != "2026-07-02" || c.Units["default"] != 1 || c.Total["default"] != 3 ||
		c.Rejected != 3 {
		t.Errorf("counts %+v", c)
	}
}

// TestYouTubeLimits: many concurrent requests use exactly the units of a limit. The other requests
// get the limit's error and take no units.
func TestYouTubeLimits(t *testing.T) {
	const search = "/youtube/v3/search?part=snippet"
	for _, test := range []struct {
		server              *YouTube
		path                string
		units               int64
		code                int
		reason, limit, unit string
	}{
		{&YouTube{Limits: map[string]int64{"default": 25}}, chartQuery + "US", 25, 403,
			"quotaExceeded", "", ""},
		{&YouTube{Limits: map[string]int64{"search_list": 0}}, search, 0, 429,
			"rateLimitExceeded", "0", "1/d/{project}"},
		{&YouTube{MinuteLimit: 2}, chartQuery + "US", 2, 429,
			"rateLimitExceeded", "2", "1/min/{project}"},
	} {
		s := test.server
		s.Now = func() time.Time { return noon }
		url := start(t, s)
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() { status(t, url+test.path) })
		}
		all.Wait()
		e := wantError(t, test.path, errorOf(t, url+test.path), test.code, test.reason)
		if test.unit != "" {
			m := metadata(t, e)
			if m["quota_limit_value"] != test.limit || m["quota_unit"] != test.unit {
				t.Errorf("metadata %v", m)
			}
		}
		c := s.Counts()
		got := c.Units["default"] + c.Units["search_list"]
		if got != test.units || c.Rejected != 41-test.units || c.Requests != 41 ||
			len(c.Units) > 1 {
			t.Errorf("counts %+v", c)
		}
		if r := get(t, url, "GET /youtube/v3/videos:batchGetStats?part=id&id=x"); r.status != 200 &&
			s.MinuteLimit == 0 {
			t.Errorf("another bucket: %+v", r)
		}
	}
}

func TestUnitsByMethod(t *testing.T) {
	for _, test := range []struct {
		verb, path, bucket string
		units              int64
	}{
		{"GET", "/youtube/v3/videos?part=id&chart=mostPopular", "default", 1},
		{"GET", "/youtube/v3/videos", "default", 1}, // invalid
		{"GET", "/youtube/v3/videos?part=id&chart=mostPopular&regionCode=XX", "default", 1},
		{"GET", "/youtube/v3/videos:batchGetStats", "video_batch_get_stats", 1},
		{"GET", "/youtube/v3/search?part=snippet", "search_list", 1},
		{"POST", "/youtube/v3/videos?part=snippet", "video_insert", 1},
		{"POST", "/upload/youtube/v3/videos?uploadType=multipart", "video_insert", 1},
		{"POST", "/youtube/v3/playlists?part=snippet", "default", 50},
		{"DELETE", "/youtube/v3/playlists?id=x", "default", 50},
		{"POST", "/resumable/upload/youtube/v3/captions", "default", 400},
		{"GET", "/youtube/v3/captions/abc", "default", 200},
		{"GET", "/youtube/v3/captions/a/b", "default", 0},
		{"GET", "/youtube/v3videos", "default", 0},
		{"PATCH", "/youtube/v3/videos", "default", 0},
	} {
		s := &YouTube{}
		get(t, start(t, s), test.verb+" "+test.path)
		c := s.Counts()
		if c.Units[test.bucket] != test.units || c.Total[test.bucket] != test.units ||
			(test.units == 0) != (c.NotFound == 1) {
			t.Errorf("%s %s: counts %+v", test.verb, test.path, c)
		}
	}
}

func TestUnchangedCostsAUnit(t *testing.T) {
	s := &YouTube{}
	list := client(t, start(t, s)).VideoCategories.List([]string{"snippet"}).RegionCode("US")
	l, err := list.Do()
	must(t, err)
	if _, err := list.IfNoneMatch(l.Etag).Do(); !googleapi.IsNotModified(err) {
		t.Errorf("error %v, want not modified", err)
	}
	if c := s.Counts(); c.Units["default"] != 2 {
		t.Errorf("counts %+v", c)
	}
}
