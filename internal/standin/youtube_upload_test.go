package standin

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/youtube/v3"
)

// film returns n bytes of media.
func film(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * i >> 7)
	}
	return b
}

// idOf returns the ID of the media's resource.
func idOf(media []byte) string {
	sum := sha256.Sum256(media)
	return base64.RawURLEncoding.EncodeToString(sum[:])[:11]
}

// TestUploadOnce: the Google client uploads in several requests, one of which fails, and is billed
// once. Tests in internal/proxy upload other sizes.
func TestUploadOnce(t *testing.T) {
	s := &YouTube{Faults: []string{"503@3"}}
	c := client(t, start(t, s))
	media := film(2*granule + 1000)
	v, err := c.Videos.Insert([]string{"snippet", "status"}, &youtube.Video{
		Snippet: &youtube.VideoSnippet{Title: "Ünïcode"},
	}).Media(bytes.NewReader(media), googleapi.ChunkSize(granule)).Do()
	must(t, err)
	if v.Id != idOf(media) || v.Snippet.Title != "Ünïcode" || v.Status.UploadStatus != "uploaded" {
		t.Errorf("got %+v", v)
	}
	if n := s.Counts(); n.Units["video_insert"] != 1 || n.Continued != 4 || n.Requests != 5 {
		t.Errorf("counts %+v", n)
	}
}

// sendChunk sends a request of a session.
func sendChunk(t *testing.T, verb, to, contentRange string, body []byte) result {
	t.Helper()
	return get(t, to, verb+"  "+string(body), "Content-Range: "+contentRange)
}

// began starts an upload session and returns its URL.
func began(t *testing.T, url string) string {
	t.Helper()
	const path = "/upload/youtube/v3/videos?uploadType=resumable&part=id&key=secret"
	r := get(t, url, "POST "+path)
	to := r.header.Get("Location")
	if r.status != 200 || !strings.HasPrefix(to, url) || strings.Contains(to, "secret") {
		t.Fatalf("%+v", r)
	}
	return to
}

// TestSession: a session reports its progress, ignores repeated bytes, and ends with the
// resource.
func TestSession(t *testing.T) {
	s := &YouTube{}
	url := start(t, s)
	to := began(t, url)
	media := film(granule + 100)
	all := len(media)
	first := fmt.Sprintf("bytes 0-%d/%d", granule-1, all)
	rest := fmt.Sprintf("bytes 1000-%d/%d", all-1, all)
	for _, step := range []struct {
		name, verb, contentRange string
		body                     []byte
		status                   int
		wantRange                string
	}{
		{"nothing yet", "PUT", "bytes */*", nil, 308, ""},
		{"too short", "PUT", fmt.Sprintf("bytes 0-99/%d", all), media[:100], 400, ""},
		{"a gap", "PUT", fmt.Sprintf("bytes 9-99/%d", all), media[9:100], 400, ""},
		{"unreadable", "PUT", "bytes nine/10", nil, 400, ""},
		{"backwards", "PUT", "bytes 9-3/10", nil, 400, ""},
		{"a chunk", "PUT", first, media[:granule], 308, "bytes=0-262143"},
		{"the same", "PUT", first, media[:granule], 308, "bytes=0-262143"},
		{"how far", "PUT", fmt.Sprintf("bytes */%d", all), nil, 308, "bytes=0-262143"},
		{"another size", "PUT", fmt.Sprintf("bytes */%d", all+1), nil, 400, ""},
		{"another verb", "GET", "", nil, 405, ""},
		{"the rest, overlapping", "POST", rest, media[1000:], 200, ""},
		{"again", "PUT", fmt.Sprintf("bytes */%d", all), nil, 200, ""},
	} {
		r := sendChunk(t, step.verb, to, step.contentRange, step.body)
		if r.status != step.status || r.header.Get("Range") != step.wantRange ||
			step.status == 200 && !strings.Contains(r.body, idOf(media)) {
			t.Errorf("%s: %+v", step.name, r)
		}
	}
	r := sendChunk(t, "PUT", url+"/upload/youtube/v3/videos?upload_id=none", "", media)
	if r.status != http.StatusNotFound {
		t.Errorf("an unknown session: %+v", r)
	}
	if n := s.Counts(); n.Units["video_insert"] != 1 || n.Continued != 13 {
		t.Errorf("counts %+v", n)
	}
}

// TestMethodOverride: a list of IDs that is too long for a URL is sent as a form, and metered as
// a GET.
func TestMethodOverride(t *testing.T) {
	s := &YouTube{}
	to := start(t, s)
	form := url.Values{"part": {"id"}, "chart": {"mostPopular"}, "maxResults": {"3"}}.Encode()
	for _, c := range []struct {
		form          string
		status, items int
	}{{form, 200, 3}, {form + "&key=k", 200, 3}, {"a;b=%zz", 400, 0}} {
		r := get(t, to, "POST /youtube/v3/videos "+c.form, "X-Http-Method-Override: GET",
			"Content-Type: application/x-www-form-urlencoded")
		if r.status != c.status || strings.Count(r.body, `youtube#video"`) != c.items {
			t.Errorf("%s: %+v", c.form, r)
		}
	}
	n := s.Counts()
	if n.ByMethod["youtube.videos.list"] != 2 || n.Units["default"] != 2 || n.KeyInURL != 1 {
		t.Errorf("counts %+v", n)
	}
}
