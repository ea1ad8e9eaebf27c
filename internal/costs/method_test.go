package costs_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	api "google.golang.org/api/youtube/v3"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

func TestMethodByRule(t *testing.T) {
	table := costs.Default()
	named := func(want, verb, target string, header ...string) {
		t.Helper()
		r, err := http.NewRequest(verb, "https://example.test"+target, nil)
		must(t, err)
		r.Method = verb
		if len(header) > 0 {
			r.Header.Set(costs.Override, header[0])
		}
		got, err := table.Method(r)
		if got != want || errors.Is(err, quota.ErrUnpriced) != (want == "") {
			t.Errorf("%s %s %q: %q, %v; want %q", verb, target, header, got, err, want)
		}
	}
	const uploads = "/upload/youtube/v3/videos"
	const captions = "/resumable/upload/youtube/v3/captions?upload_id=1"
	named("youtube.videos.list", "GET", "/youtube/v3/videos?chart=mostPopular")
	named("youtube.videos.list", "", "/youtube/v3/videos")
	named("youtube.videos.list", "GET", "/youtube/v3/videos/")
	named("youtube.videos.batchGetStats", "GET", "/youtube/v3/videos:batchGetStats?id=a")
	named("youtube.videos.getRating", "GET", "/youtube/v3/videos/getRating")
	named("youtube.captions.list", "GET", "/youtube/v3/captions")
	named("youtube.captions.download", "GET", "/youtube/v3/captions/-x")
	named("youtube.captions.download", "GET", "/youtube/v3/captions/a%3D")
	named("youtube.youtube.v3.liveChat.messages.stream", "GET",
		"/youtube/v3/liveChat/messages/stream")
	named("youtube.videos.insert", "POST", uploads+"?uploadType=resumable")
	for _, verb := range []string{"POST", "PUT", "DELETE"} {
		named("youtube.videos.insert", verb, uploads+"?uploadType=resumable&upload_id=1")
	}
	named("youtube.captions.update", "PUT", captions)
	named("youtube.captions.update", "POST", captions) // the dearest
	named("youtube.videos.insert", "POST", "/youtube/v3/videos")
	for path, want := range map[string]string{"": "list", "?part=id": "list",
		"/getRating": "getRating", ":batchGetStats": "batchGetStats"} { // long lists of ids
		named("youtube.videos."+want, "POST", "/youtube/v3/videos"+path, "GET")
	}

	for _, query := range []string{"", "?upload_id="} {
		named("", "PUT", uploads+query)
	}
	for _, target := range []string{uploads, uploads + "?upload_id=1",
		"//youtube/v3/videos", "/youtube/v3/captions/..",
		"/youtube/v3/captions/a/b", "/youtube/v3/Videos", "/proxy/youtube/v3/videos",
		"/youtube/v3search", "/", ""} {
		named("", "GET", target)
	}
	for _, verb := range []string{"PATCH", "HEAD", "get"} {
		named("", verb, "/youtube/v3/videos")
	}
	named("", "PUT", "/youtube/v3/playlistImages/x?upload_id=1")
	named("", "PUT", "/youtube/v3/comments/markAsSpam")
	named("", "POST", "/batch")
	named("", "POST", "/batch/youtube/v3")
}

// namer names each request that a client sends and answers it with an empty object.
type namer struct {
	table *costs.Table
	names []string
}

func (n *namer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
	}
	name, err := n.table.Method(r)
	if err != nil {
		return nil, err
	}
	n.names = append(n.names, name)
	header := http.Header{"Content-Type": {"application/json"}}
	if q := r.URL.Query(); q.Get("uploadType") == "resumable" && !q.Has("upload_id") {
		header.Set("Location", r.URL.String()+"&upload_id=1")
	}
	header.Set("X-Http-Status-Code-Override", "200")
	return &http.Response{StatusCode: 200, Header: header,
		Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// do is a call of the client, whatever it returns.
func do[T any](call interface {
	Do(...googleapi.CallOption) (T, error)
}) func() error {
	return func() error {
		_, err := call.Do()
		return err
	}
}

func TestMethodOfTheRealClient(t *testing.T) {
	n := &namer{table: costs.Default()}
	s, err := api.NewService(t.Context(), option.WithHTTPClient(&http.Client{Transport: n}))
	must(t, err)
	media := func(size int) io.Reader { return bytes.NewReader(make([]byte, size)) }
	part := []string{"snippet", "statistics"}
	for _, c := range []struct {
		want  string
		times int
		call  func() error
	}{
		{"youtube.videos.list", 1, do(s.Videos.List(part).Chart("mostPopular"))},
		{"youtube.videos.batchGetStats", 1, do(s.Videos.BatchGetStats().Id("a"))},
		{"youtube.videos.delete", 1, func() error { return s.Videos.Delete("-x").Do() }},
		{"youtube.search.list", 1, do(s.Search.List(part).Q("?&/#"))},
		{"youtube.captions.download", 1, func() error {
			_, err := s.Captions.Download("a=b_c-").Download()
			return err
		}},
		{"youtube.youtube.v3.liveChat.messages.stream", 1,
			do(s.Youtube.V3.LiveChat.Messages.Stream())},
		{"youtube.thumbnails.set", 1, do(s.Thumbnails.Set("a").Media(media(9)))},
		{"youtube.videos.insert", 1, do(s.Videos.Insert(part, &api.Video{}).Media(media(9)))},
		// one request opens the upload, one carries it
		{"youtube.videos.insert", 2, do(s.Videos.Insert(part, &api.Video{}).Media(media(300<<10),
			googleapi.ChunkSize(256<<10)))},
		{"youtube.captions.update", 1, do(s.Captions.Update(part, &api.Caption{}).Media(media(9)))},
	} {
		n.names = nil
		if err := c.call(); err != nil {
			t.Errorf("%s: %v", c.want, err)
		}
		if want := slices.Repeat([]string{c.want}, c.times); !slices.Equal(n.names, want) {
			t.Errorf("named %v, want %v", n.names, want)
		}
	}
}
