package costs_test

import (
	"bytes"
	"context"
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
	for _, c := range []struct {
		verb, url, override string
		want                string // "" for unpriced
	}{
		{"GET", "/youtube/v3/videos?chart=mostPopular", "", "youtube.videos.list"},
		{"", "/youtube/v3/videos", "", "youtube.videos.list"},
		{"GET", "/youtube/v3/videos:batchGetStats?id=a", "", "youtube.videos.batchGetStats"},
		{"GET", "/youtube/v3/videos/getRating", "", "youtube.videos.getRating"},
		{"GET", "/youtube/v3/captions", "", "youtube.captions.list"},
		{"GET", "/youtube/v3/captions/-x", "", "youtube.captions.download"},
		{"GET", "/youtube/v3/captions/a%3D", "", "youtube.captions.download"},
		{"GET", "/youtube/v3/liveChat/messages/stream", "",
			"youtube.youtube.v3.liveChat.messages.stream"},
		{"POST", "/upload/youtube/v3/videos?uploadType=resumable", "", "youtube.videos.insert"},
		{"POST", "/upload/youtube/v3/videos?uploadType=resumable&upload_id=1", "",
			"youtube.videos.insert"},
		{"PUT", "/upload/youtube/v3/videos?uploadType=resumable&upload_id=1", "",
			"youtube.videos.insert"},
		{"DELETE", "/upload/youtube/v3/videos?uploadType=resumable&upload_id=1", "",
			"youtube.videos.insert"},
		{"PUT", "/resumable/upload/youtube/v3/captions?upload_id=1", "", "youtube.captions.update"},
		// the dearest
		{"POST", "/resumable/upload/youtube/v3/captions?upload_id=1", "",
			"youtube.captions.update"},
		{"POST", "/upload/youtube/v3/captions?uploadType=multipart&upload_id=1", "",
			"youtube.captions.insert"},
		{"POST", "/youtube/v3/videos", "", "youtube.videos.insert"},
		{"POST", "/youtube/v3/videos", "GET", "youtube.videos.list"},

		{"PUT", "/upload/youtube/v3/videos", "", ""},
		{"GET", "/upload/youtube/v3/videos", "", ""},
		{"GET", "/upload/youtube/v3/videos?upload_id=1", "", ""},
		{"PUT", "/upload/youtube/v3/videos?upload_id=", "", ""},
		{"PUT", "/upload/youtube/v3/videos?upload_id=1&upload_id=2", "", ""},
		{"PUT", "/upload/youtube/v3/videos?upload_id=1&uploadType=media", "", ""},
		{"PUT", "/upload/youtube/v3/videos?upload_id=1&uploadType=resumable&uploadType=media", "",
			""},
		{"PUT", "/upload/youtube/v3/videos?upload_id=1&upload_protocol=raw", "", ""},
		{"PUT", "/youtube/v3/playlistImages/x?upload_id=1", "", ""},
		{"PUT", "/youtube/v3/comments/markAsSpam", "", ""},
		{"PATCH", "/youtube/v3/videos", "", ""},
		{"HEAD", "/youtube/v3/videos", "", ""},
		{"get", "/youtube/v3/videos", "", ""},
		{"GET", "/youtube/v3/videos/", "", ""},
		{"GET", "//youtube/v3/videos", "", ""},
		{"GET", "/youtube/v3/captions/", "", ""},
		{"GET", "/youtube/v3/captions/..", "", ""},
		{"GET", "/youtube/v3/captions/a/b", "", ""},
		{"GET", "/youtube/v3/Videos", "", ""},
		{"GET", "/youtube/v3/videos%3AbatchGetStats", "", ""},
		{"GET", "/youtube/v3/vide%6Fs", "", ""},
		{"GET", "/proxy/youtube/v3/videos", "", ""},
		{"GET", "/youtube/v3search", "", ""},
		{"POST", "/batch", "", ""},
		{"POST", "/batch/youtube/v3", "", ""},
		{"GET", "/", "", ""},
		{"GET", "", "", ""},
	} {
		r, err := http.NewRequest(c.verb, "https://example.test"+c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Method = c.verb
		if c.override != "" {
			r.Header.Set("X-HTTP-Method-Override", c.override)
		}
		got, err := table.Method(r)
		if got != c.want || errors.Is(err, quota.ErrUnpriced) != (c.want == "") {
			t.Errorf("%s %s override %q: %q, %v; want %q", c.verb, c.url, c.override, got, err,
				c.want)
		}
	}
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

func TestMethodOfTheRealClient(t *testing.T) {
	n := &namer{table: costs.Default()}
	s, err := api.NewService(context.Background(),
		option.WithHTTPClient(&http.Client{Transport: n}))
	if err != nil {
		t.Fatal(err)
	}
	media := func(size int) io.Reader { return bytes.NewReader(make([]byte, size)) }
	part := []string{"snippet", "statistics"}
	for _, c := range []struct {
		want  string
		times int
		call  func() error
	}{
		{"youtube.videos.list", 1, func() error {
			_,
				err := s.Videos.List(part).Chart("mostPopular").Do()
			return err
		}},
		{"youtube.videos.batchGetStats", 1, func() error {
			_,
				err := s.Videos.BatchGetStats().Id("a").Do()
			return err
		}},
		{"youtube.videos.delete", 1, func() error { return s.Videos.Delete("-x").Do() }},
		{"youtube.videos.update", 1, func() error {
			_,
				err := s.Videos.Update(part, &api.Video{}).Do()
			return err
		}},
		{"youtube.search.list", 1, func() error {
			_,
				err := s.Search.List(part).Q("?&/#").Do()
			return err
		}},
		{"youtube.videoCategories.list", 1, func() error {
			_,
				err := s.VideoCategories.List(part).RegionCode("BR").Do()
			return err
		}},
		{"youtube.i18nRegions.list", 1, func() error {
			_,
				err := s.I18nRegions.List(part).Do()
			return err
		}},
		{"youtube.captions.download", 1, func() error {
			_,
				err := s.Captions.Download("a=b_c-").Download()
			return err
		}},
		{"youtube.liveBroadcasts.insertCuepoint", 1,
			func() error { _, err := s.LiveBroadcasts.InsertCuepoint(&api.Cuepoint{}).Do(); return err }},
		{"youtube.youtube.v3.liveChat.messages.stream", 1,
			func() error { _, err := s.Youtube.V3.LiveChat.Messages.Stream().Do(); return err }},
		{"youtube.thumbnails.set", 1, func() error {
			_,
				err := s.Thumbnails.Set("a").Media(media(9)).Do()
			return err
		}},
		{"youtube.videos.insert", 1, func() error {
			_,
				err := s.Videos.Insert(part, &api.Video{}).Media(media(9)).Do()
			return err
		}},
		{"youtube.videos.insert", 2, func() error { // one request opens the upload, one carries it
			_, err := s.Videos.Insert(part, &api.Video{}).Media(media(300<<10),
				googleapi.ChunkSize(256<<10)).Do()
			return err
		}},
		{"youtube.captions.update", 1, func() error {
			_,
				err := s.Captions.Update(part, &api.Caption{}).Media(media(9)).Do()
			return err
		}},
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
