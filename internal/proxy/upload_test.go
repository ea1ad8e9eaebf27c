package proxy_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/youtube/v3"

	"quotabudget/internal/quota"
)

const granule = 256 << 10 // the least that a chunk may have

// uploads is a limit of so many uploads, and as many units of the default bucket.
func uploads(n int64) []quota.Limit {
	of := units(n)
	return append(of, quota.Limit{Bucket: "video_insert", Units: n, Window: of[0].Window})
}

// googleClient is the real one, pointed at the proxy.
func (s *station) googleClient(t *testing.T) *youtube.Service {
	t.Helper()
	c, err := youtube.NewService(t.Context(), option.WithEndpoint(s.front.URL+"/"),
		option.WithoutAuthentication())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// begin begins an upload and returns where its media goes.
func (s *station) begin(t *testing.T) string {
	t.Helper()
	a := s.do(t, "POST", "/upload/youtube/v3/videos?uploadType=resumable&part=id&key=own", "{}")
	to, ok := strings.CutPrefix(a.header.Get("Location"), s.front.URL)
	if a.status != http.StatusOK || !ok || strings.Contains(to, "own") || strings.Contains(to, canary) {
		t.Fatalf("%d %v", a.status, a.header)
	}
	return to
}

// The Google client uploads in one request and in several, through the proxy to the end; each upload
// is one charge.
func TestUploadIsOneCharge(t *testing.T) {
	s := open(t, uploads(10))
	c := s.googleClient(t)
	for _, size := range []int{1000, granule + 1, 2*granule + 1000, 3 * granule} {
		_, err := c.Videos.Insert([]string{"id"}, &youtube.Video{}).
			Media(bytes.NewReader(make([]byte, size)), googleapi.ChunkSize(granule)).Do()
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
	n := s.standin.Counts()
	if s.used(t) != 4 || n.Units["video_insert"] != 4 || n.Continued != 2+3+4 {
		t.Errorf("the ledger has %d, the stand-in counted %+v", s.used(t), n)
	}
	if asked := s.asked.Load(); asked.Header.Get("X-Goog-Api-Key") != canary || strings.Contains(asked.RequestURI, "quota") {
		t.Errorf("the last request of an upload left as %s %v", asked.RequestURI, asked.Header)
	}
}

// An upload that was begun through one proxy goes on through another, when no units are left, and
// with a bucket suspended; it can be asked after and cancelled for nothing.
func TestUploadGoesOn(t *testing.T) {
	s := open(t, uploads(1))
	to := s.begin(t)
	if a := s.do(t, "POST", "/upload/youtube/v3/videos?uploadType=resumable", "{}"); a.status != 429 {
		t.Errorf("another upload: %d", a.status)
	}
	s.gate.Budget.Ledger.Suspend(t.Context(), "key1", "video_insert", noon.AddDate(0, 0, 1))
	other := open(t, uploads(1), func(o *station) { o.Transport, o.Upstream = s.Transport, s.Upstream })
	film := strings.Repeat("f", granule+10)
	all := len(film)
	for _, step := range []struct {
		verb, contentRange, body string
		want                     int
	}{
		{"PUT", fmt.Sprintf("bytes */%d", all), "", 308},
		{"PUT", fmt.Sprintf("bytes 0-%d/%d", granule-1, all), film[:granule], 308},
		{"POST", fmt.Sprintf("bytes %d-%d/%d", granule, all-1, all), film[granule:], 200},
		{"DELETE", "", "", 499},
		{"PUT", fmt.Sprintf("bytes */%d", all), "", 410},
	} {
		if a := other.do(t, step.verb, to, step.body, "Content-Range", step.contentRange); a.status != step.want {
			t.Errorf("%s %s: %d %s", step.verb, step.contentRange, a.status, a.body)
		}
	}
	if n := s.standin.Counts(); s.used(t) != 1 || n.Units["video_insert"] != 1 || n.Continued != 5 {
		t.Errorf("the ledger has %d, the stand-in counted %+v", s.used(t), n)
	}
}

// A session of unknown origin, and an address that was changed, are no way around paying: each is an
// upload of its own, charged once. What is not surely a session is charged every time.
func TestUploadUnknown(t *testing.T) {
	s := open(t, uploads(100))
	paid := s.begin(t)
	session, _, _ := strings.Cut(paid, "&quota_paid=")
	const made = "/upload/youtube/v3/videos?uploadType=resumable&upload_id=made-up"
	for _, c := range []struct {
		name, verb, path string
		header           []string
		want             int64 // units for three of them
	}{
		{"made up", "PUT", made, nil, 1},
		{"the same by another verb", "POST", made, nil, 0},
		{"made up, and signed", "PUT", made + "2&quota_paid=" + strings.Repeat("A", 43), nil, 1},
		{"unsigned", "PUT", session, nil, 1},
		{"signed twice", "PUT", paid + "&quota_paid=x", nil, 0}, // as the unsigned
		{"another part", "PUT", strings.Replace(paid, "part=id", "part=snippet", 1), nil, 1},
		{"another path", "PUT", strings.Replace(paid, "/videos", "/thumbnails/set", 1), nil, 50},
		{"two ids", "POST", paid + "&upload_id=other", nil, 3},
		{"another type", "POST", paid + "&uploadType=multipart", nil, 3},
		{"another protocol", "POST", paid, []string{"X-Goog-Upload-Command", "start"}, 3},
		{"a new one under an old id", "POST", made + "3", nil, 1},
		{"captions, by the cheaper verb", "POST", "/upload/youtube/v3/captions?upload_id=made-up", nil, 0},
	} {
		before := s.used(t)
		for range 3 {
			s.do(t, c.verb, c.path, "film", c.header...)
		}
		if got := s.used(t) - before; got != c.want {
			t.Errorf("%s: %d units for three requests, want %d", c.name, got, c.want)
		}
	}
	if n := s.standin.Counts(); n.Units["video_insert"] > s.used(t) {
		t.Errorf("the ledger has %d, the stand-in counted %+v", s.used(t), n)
	}
}

// An answer to what was not charged is not signed: an upload that it began would be free.
func TestUploadBegunByAnother(t *testing.T) {
	s := open(t, uploads(100), func(s *station) {
		s.upstream.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://www.googleapis.com/upload/youtube/v3/videos?upload_id=fresh")
		})
	})
	a := s.do(t, "POST", "/upload/youtube/v3/videos?uploadType=resumable", "{}")
	paid := a.header.Get("Location")
	if !strings.HasPrefix(paid, s.front.URL+"/upload/youtube/v3/videos?upload_id=fresh&quota_paid=") {
		t.Fatalf("Location %s", paid)
	}
	a = s.do(t, "PUT", strings.TrimPrefix(paid, s.front.URL), "film")
	if strings.Contains(a.header.Get("Location"), "quota_paid") {
		t.Errorf("Location %s", a.header.Get("Location"))
	}
	if used := s.used(t); used != 1 {
		t.Errorf("the ledger has %d units", used)
	}
}
