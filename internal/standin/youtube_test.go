package standin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/youtube/v3"
)

// start serves s on the loopback interface until the test ends.
func start(t *testing.T, s *YouTube) string {
	t.Helper()
	upstream := httptest.NewServer(s)
	t.Cleanup(upstream.Close)
	return upstream.URL
}

// client returns the real Google client of a server. It sends its key in a header.
func client(t *testing.T, url string) *youtube.Service {
	t.Helper()
	c, err := youtube.NewService(t.Context(), option.WithEndpoint(url+"/"), option.WithHTTPClient(
		&http.Client{Transport: withKey("k")}))
	must(t, err)
	return c
}

// head requests the first five videos of a chart.
func head(c *youtube.Service) error {
	_, err := c.Videos.List([]string{"id"}).Chart("mostPopular").Do()
	return err
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

// send sends a request with headers given as pairs of name and value. It skips empty values.
func send(t *testing.T, verb, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), verb, url, strings.NewReader(body))
	must(t, err)
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp, string(text)
}

// status sends a request with a key in the header and returns the status and the body.
func status(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, body := send(t, "GET", url, "", "X-Goog-Api-Key", "k")
	return resp.StatusCode, body
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
		resp, _ := send(t, test.verb, urls[test.server]+chartQuery+"US"+test.query, "",
			"X-Goog-Api-Key", test.key, "Authorization", bearer)
		if resp.StatusCode != test.status {
			t.Errorf("%+v: status %d", test, resp.StatusCode)
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
	url := start(t, &YouTube{Latency: 30 * time.Millisecond})
	before := time.Now()
	status(t, url+chartQuery+"US")
	if d := time.Since(before); d < 30*time.Millisecond {
		t.Errorf("answered after %v", d)
	}
}

func TestControl(t *testing.T) {
	s := &YouTube{Now: func() time.Time { return time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC) }}
	url := start(t, s)
	expect := func(what string, want int) {
		t.Helper()
		if status, body := status(t, url+chartQuery+"US"); status != want {
			t.Errorf("%s: status %d, want %d: %s", what, status, want, body)
		}
	}
	set := func(settings string, want int) {
		t.Helper()
		resp, body := send(t, "POST", url+"/standin/settings", settings)
		if resp.StatusCode != want {
			t.Errorf("%s: %d %s", settings, resp.StatusCode, body)
		}
	}
	set(`{"limits":{"default":2},"faults":["503@1"]}`, 200)
	expect("the fault", 503)
	expect("the last unit", 200)
	expect("exhausted", 403)
	set(`{"limit":1}`, 400)
	set(`{`, 400)
	set(`{"faults":["506@1"],"limits":{"default":9}}`, 400)
	set(`{"advance":"1 day"}`, 400)
	expect("still exhausted", 403)
	set(`{"advance":"24h","days_back":1,"minute_limit":1}`, 200)
	expect("the next day", 200)
	expect("the minute", 429)

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

// must fails the test on an error.
