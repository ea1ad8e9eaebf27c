package youtubetest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/api/youtube/v3"
)

// start serves s on the loopback interface until the test is over.
func start(t *testing.T, s *Server) string {
	t.Helper()
	upstream := httptest.NewServer(s)
	t.Cleanup(upstream.Close)
	return upstream.URL
}

// client is the real Google client on a server; its key goes as a header.
func client(t *testing.T, url string) *youtube.Service {
	t.Helper()
	c, err := youtube.NewService(t.Context(), option.WithEndpoint(url+"/"), option.WithHTTPClient(
		&http.Client{Transport: withKey("k")}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type withKey string

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Goog-Api-Key", string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// get asks with a key in the header and returns the status and the body.
func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	resp, err := (&http.Client{Transport: withKey("k")}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

// sharedData is the folder of recorded answers and real charts, or "" where there is none.
func sharedData(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("QUOTA_SHARED_DATA"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		data := filepath.Join(dir, "shared", "data")
		if _, err := os.Stat(data); err == nil {
			return data
		}
	}
	t.Log("no shared data: only what the tree holds is tested")
	return ""
}

const chartQuery = "/youtube/v3/videos?part=id&chart=mostPopular&regionCode="

// TestToken: a user's token is as good as a key, and with tokens set what writes needs one.
func TestToken(t *testing.T) {
	s := &Server{Keys: []string{"good"}, Tokens: []string{"user"}}
	url := start(t, s)
	for _, test := range []struct {
		verb, key, token string
		status           int
	}{
		{"GET", "", "user", 200},
		{"GET", "good", "user", 200},
		{"GET", "bad", "user", 400},
		{"GET", "good", "another", 401},
		{"GET", "good", "", 200},
		{"GET", "", "", 403},
		{"POST", "good", "", 401},
		{"POST", "", "another", 401},
		{"POST", "", "user", 200},
	} {
		r, err := http.NewRequest(test.verb, url+chartQuery+"US", nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.key != "" {
			r.Header.Set("X-Goog-Api-Key", test.key)
		}
		if test.token != "" {
			r.Header.Set("Authorization", "Bearer "+test.token)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != test.status {
			t.Errorf("%+v: status %d", test, resp.StatusCode)
		}
	}
	if c := s.Counts(); c.Refused != 5 || c.Requests != 9 {
		t.Errorf("counts %+v", c)
	}
}

func TestCredential(t *testing.T) {
	s := &Server{Keys: []string{"good"}}
	url := start(t, s) + chartQuery + "US"
	for _, test := range []struct {
		name, header, query string
		status              int
	}{
		{"none", "", "", 403},
		{"empty", "", "&key=", 403},
		{"wrong", "bad", "", 400},
		{"header", "good", "", 200},
		{"in the URL", "", "&key=good", 200},
	} {
		r, err := http.NewRequest("GET", url+test.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.header != "" {
			r.Header.Set("X-Goog-Api-Key", test.header)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != test.status {
			t.Errorf("%s: status %d, want %d", test.name, resp.StatusCode, test.status)
		}
	}
	c := s.Counts()
	if c.Refused != 3 || c.KeyInURL != 2 || c.Units["default"] != 2 || c.Requests != 5 {
		t.Errorf("counts %+v", c)
	}
}

func TestLatency(t *testing.T) {
	url := start(t, &Server{Latency: 30 * time.Millisecond})
	before := time.Now()
	get(t, url+chartQuery+"US")
	if d := time.Since(before); d < 30*time.Millisecond {
		t.Errorf("answered after %v", d)
	}
}

func TestControl(t *testing.T) {
	s := &Server{Now: func() time.Time { return time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC) }}
	url := start(t, s)
	post := func(body string) int {
		resp, err := http.Post(url+"/standin/settings", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	expect := func(what string, want int) {
		t.Helper()
		if status, body := get(t, url+chartQuery+"US"); status != want {
			t.Errorf("%s: status %d, want %d: %s", what, status, want, body)
		}
	}
	if got := post(`{"limits":{"default":2},"faults":["503@1"]}`); got != 200 {
		t.Fatalf("settings: %d", got)
	}
	expect("the fault", 503)
	expect("the last unit", 200)
	expect("exhausted", 403)
	for _, wrong := range []string{`{"limit":1}`, `{`,
		`{"faults":["506@1"],"limits":{"default":9}}`, `{"advance":"1 day"}`} {
		if got := post(wrong); got != 400 {
			t.Errorf("%s: %d", wrong, got)
		}
	}
	expect("still exhausted", 403)
	post(`{"advance":"24h","days_back":1,"minute_limit":1}`)
	expect("the next day", 200)
	expect("the minute", 429)

	var c Counts
	status, body := get(t, url+"/standin/counts")
	if err := json.Unmarshal(body, &c); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	if c.Day != "2026-07-02" || c.Units["default"] != 1 || c.Total["default"] != 3 ||
		c.Rejected != 3 {
		t.Errorf("counts %+v", c)
	}
}
