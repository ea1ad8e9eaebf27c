package youtube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
	"quotabudget/internal/youtube"
)

// canary is a key that no error may contain.
const canary = "canary-2f6b1c"

// gate is a function that serves as an http.RoundTripper.
type gate func(*http.Request) (*http.Response, error)

func (g gate) RoundTrip(r *http.Request) (*http.Response, error) { return g(r) }

// keyed adds the canary to the header, as the gate adds a key.
func keyed(next http.RoundTripper) gate {
	return func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("X-Goog-Api-Key", canary)
		return next.RoundTrip(r)
	}
}

// answer returns a response to a request.
func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(body))}
}

// replay answers every request with one body.
func replay(body string) gate {
	return func(r *http.Request) (*http.Response, error) { return answer(r, 200, body), nil }
}

// connect returns a client without retries.
func connect(t *testing.T, address string, rt http.RoundTripper) *youtube.Client {
	t.Helper()
	client, err := youtube.New(t.Context(), address, rt)
	must(t, err)
	client.Retry = youtube.Retry{}
	return client
}

// start runs an upstream and returns a client of it.
func start(t *testing.T, handler http.Handler) *youtube.Client {
	t.Helper()
	upstream := httptest.NewServer(handler)
	t.Cleanup(upstream.Close)
	// net/http itself would retry on a connection that died
	transport := &http.Transport{DisableKeepAlives: true}
	return connect(t, upstream.URL, keyed(transport))
}

// ask requests the first page of a chart.
func ask(t *testing.T, client *youtube.Client) (youtube.Page, error) {
	t.Helper()
	return client.Chart(t.Context(), youtube.ChartRequest{Region: "US"})
}

// wantKind checks that err is a fault of that kind and does not contain the key.
func wantKind(t *testing.T, what string, err error, want youtube.Kind) {
	t.Helper()
	if kind, ok := youtube.KindOf(err); !ok || kind != want {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
	if shown := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(shown, canary) ||
		strings.Contains(shown, "chart=") {
		t.Errorf("%s: the error shows the key or the URL: %v", what, err)
	}
}

func written(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func TestChart(t *testing.T) {
	charts := standin.Generator{}.Charts()
	standin := &standin.YouTube{Charts: charts}
	client := start(t, standin)
	for _, region := range []string{"US", "IN", "JP"} {
		want := charts.Chart(region, charts.Days()-1)
		var got []catalog.Video
		pages, token := 0, ""
		for {
			page, err := client.Chart(t.Context(),
				youtube.ChartRequest{Region: region, PageToken: token})
			must(t, err)
			pages++
			got = append(got, page.Videos...)
			if token = page.Next; token == "" {
				break
			}
		}
		if len(got) != len(want) || pages != (len(want)+49)/50 {
			t.Fatalf("%s: %d videos on %d pages, want %d", region, len(got), pages, len(want))
		}
		for i, w := range want {
			compareVideo(t, got[i], w)
		}
	}
	if got := standin.Counts().Units["default"]; got < 3 {
		t.Errorf("the stand-in counted %d units", got)
	}
}

func compareVideo(t *testing.T, got catalog.Video, want *standin.Video) {
	t.Helper()
	g := []string{got.ID, got.Title, got.ChannelID, got.ChannelTitle, got.Category,
		got.Description, got.PublishedAt.UTC().Format(time.RFC3339), written(got.Views),
		written(got.Likes), written(got.Comments)}
	w := []string{want.ID, want.Title, want.ChannelID, want.ChannelTitle, want.CategoryID,
		want.Description, want.PublishedAt, written(want.ViewCount), written(want.LikeCount),
		written(want.CommentCount)}
	g, w = append(g, got.Duration), append(w, want.Duration)
	if !slices.Equal(g, w) || !slices.Equal(got.Tags, want.Tags) {
		t.Errorf("got  %q %q\nwant %q %q", g, got.Tags, w, want.Tags)
	}
}

func TestMissingIsNotZero(t *testing.T) {
	body := `{"kind":"youtube#videoListResponse","items":[
		{"id":"-a","statistics":{"viewCount":"0","likeCount":"7"},"contentDetails":{"duration":"P0D"}},
		null, {"snippet":{"title":"no id"}},
		{"id":"b","contentDetails":{"duration":"<script>"}}, {"id":"c","statistics":null}, {"id":"d","statistics":{"commentCount":"0","viewCount":null}},
		{"id":"-a","statistics":{"viewCount":"9007199254740993"},"contentDetails":{"duration":"P1DT1H2M3S"},
		 "snippet":{"title":"e\u0301\r\u202e\ud83d\ude00 ","tags":["","x","x"],"publishedAt":"2026-11-01T00:00:00.000Z"}}],
		"pageInfo":{"totalResults":200,"resultsPerPage":50}}`
	page, err := ask(t, connect(t, "https://upstream.test/base", replay(body)))
	must(t, err)
	var got []string
	for _, v := range page.Videos[:4] {
		if v.Duration != "" {
			t.Errorf("%s: duration %q", v.ID, v.Duration)
		}
	}
	for _, v := range page.Videos {
		got = append(got, fmt.Sprintf("%s %s/%s/%s", v.ID, written(v.Views), written(v.Likes),
			written(v.Comments)))
	}
	want := []string{"-a 0/7/", "b //", "c //", "d //0", "-a 9007199254740993//"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	last := page.Videos[len(page.Videos)-1]
	if last.Title != "e\u0301\r\u202e\U0001F600 " ||
		!slices.Equal(last.Tags, []string{"", "x", "x"}) {
		t.Errorf("texts changed: %q %q", last.Title, last.Tags)
	}
	if last.Duration != "P1DT1H2M3S" || page.Next != "" {
		t.Errorf("duration %v, next %q", last.Duration, page.Next)
	}
}

// TestFaults: the client has an error kind for each fault of the stand-in. The stand-in bills the
// requests that it does not refuse.
func TestFaults(t *testing.T) {
	unbilled := []youtube.Kind{youtube.BadCredential, youtube.Exhausted, youtube.Throttled}
	for want, names := range map[youtube.Kind]string{
		youtube.Transient:     "200-html 500-html 500 503 500-null cut drop hang truncated",
		youtube.BadPageToken:  "400-token",
		youtube.NoChart:       "404-chart",
		youtube.BadCredential: "403-blocked 403-disabled",
		youtube.Exhausted:     "403-daily 403-quota 429-day",
		youtube.Throttled:     "429 429-bare",
	} {
		for _, name := range strings.Fields(names) {
			upstream := &standin.YouTube{Faults: []string{name}}
			client := start(t, upstream)
			if name == "hang" {
				client.Timeout = 50 * time.Millisecond
			}
			page, err := ask(t, client)
			if wantKind(t, name, err, want); page.Videos != nil {
				t.Errorf("%s: %d videos", name, len(page.Videos))
			}
			units := int64(1)
			if slices.Contains(unbilled, want) {
				units = 0
			}
			if c := upstream.Counts(); c.Units["default"] != units ||
				c.Rejected+c.Refused != 1-units {
				t.Errorf("%s: counts %+v", name, c)
			}
		}
	}
	const listed = 18 // "repeat" is not an error: the caller drops repeated videos
	if n := len(standin.FaultKinds("youtube")); n != listed+1 {
		t.Errorf("there are %d kinds of fault, %d are tried here", n, listed)
	}
}

func TestNobodyListens(t *testing.T) {
	upstream := httptest.NewServer(http.NotFoundHandler())
	upstream.Close()
	_, err := ask(t, connect(t, upstream.URL, keyed(http.DefaultTransport)))
	if wantKind(t, "nobody", err, youtube.Transient); !strings.Contains(err.Error(),
		"connection refused") {
		t.Errorf("got %v", err)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	asked := 0
	_, err := ask(t, start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})))
	if wantKind(t, "a redirect", err, youtube.Permanent); asked != 1 {
		t.Errorf("%d requests", asked)
	}
}

func TestGateErrorsPass(t *testing.T) {
	denied := &quota.DeniedError{Decision: quota.Decision{Limit: "default 24h"}}
	notSent := func(err error) error {
		return fmt.Errorf("youtube.videos.list %w: %w", quota.ErrNotSent, err)
	}
	for _, refusal := range []error{denied, notSent(denied), notSent(quota.ErrUnpriced),
		notSent(quota.ErrUnreachable), notSent(&quota.CostExceedsLimitError{}),
		notSent(io.ErrUnexpectedEOF)} {
		_, err := ask(t, connect(t, "https://upstream.test/",
			gate(func(*http.Request) (*http.Response, error) { return nil, refusal })))
		if !errors.Is(err, refusal) || strings.Contains(err.Error(), "upstream.test") {
			t.Errorf("%v came as %v", refusal, err)
		}
		if _, ours := youtube.KindOf(err); ours {
			t.Errorf("the client took %v for an answer of the upstream", refusal)
		}
		got, ok := errors.AsType[*quota.DeniedError](err)
		if ok != errors.Is(refusal, denied) || ok && got.Decision.Limit != "default 24h" {
			t.Errorf("the decision is lost: %v", err)
		}
	}
}

func TestEndpointKeepsItsPath(t *testing.T) {
	var asked string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		w.Write([]byte(`{"items":[]}`))
	}))
	defer upstream.Close()
	for _, base := range []string{"", "/", "/base", "/base/"} {
		if _, err := ask(t, connect(t, upstream.URL+base, http.DefaultTransport)); err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimSuffix(base, "/") + "/youtube/v3/videos"; asked != want {
			t.Errorf("%q asks for %s, want %s", base, asked, want)
		}
	}
}

func TestNewRefusesEndpoints(t *testing.T) {
	for _, endpoint := range []string{"", "youtube.googleapis.com", "ftp://a/", "https:///x",
		"https://u:" + canary + "@a/", "https://a/?key=" + canary, "https://a/%zz" + canary,
		"https://a/#" + canary} {
		_, err := youtube.New(t.Context(), endpoint, http.DefaultTransport)
		if err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRecordedPages: every recorded page of videos reads as its JSON says, counters and texts
// included.
func TestRecordedPages(t *testing.T) {
	pages, _ := filepath.Glob(standin.SharedData(os.Getenv("QUOTA_SHARED_DATA"), "recorded",
		"ok", "videos_*.json"))
	for _, name := range pages {
		body, err := os.ReadFile(name)
		must(t, err)
		comparePage(t, filepath.Base(name), body)
	}
}

func comparePage(t *testing.T, name string, body []byte) {
	t.Helper()
	page, err := ask(t, connect(t, "https://upstream.test", replay(string(body))))
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
	must(t, json.Unmarshal(body, &plain))
	if len(page.Videos) != len(plain.Items) || page.Next != plain.NextPageToken {
		t.Errorf("%s: %d videos, next %q; want %d, %q", name, len(page.Videos), page.Next,
			len(plain.Items), plain.NextPageToken)
		return
	}
	for i, item := range plain.Items {
		v := page.Videos[i]
		if v.ID != item.ID || v.Title != item.Snippet.Title ||
			v.Description != item.Snippet.Description ||
			v.ChannelTitle != item.Snippet.ChannelTitle {
			t.Errorf("%s: video %d is %+v, want %+v", name, i, v, item)
		}
		for key, got := range map[string]*int64{"viewCount": v.Views, "likeCount": v.Likes,
			"commentCount": v.Comments} {
			if want, ok := item.Statistics[key]; written(got) != want || (got != nil) != ok {
				t.Errorf("%s: video %s has %s %s, want %q", name, v.ID, key, written(got), want)
			}
		}
	}
}
