package costs_test

import (
	"errors"
	"net/http"
	"testing"

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
