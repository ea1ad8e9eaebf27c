package proxy_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/youtube/v3"

	"quotabudget/internal/quota"
)

const granule = 256 << 10 // the least that a chunk may have

// uploads returns limits of n uploads and n units of the default bucket.
func uploads(n int64) []quota.Limit {
	limits := units(n)
	return append(limits, quota.Limit{Bucket: "video_insert", Units: n, Window: limits[0].Window})
}

// googleClient is the real one, pointed at the proxy.
func (s *env) googleClient(t *testing.T, auth option.ClientOption) *youtube.Service {
	t.Helper()
	c, err := youtube.NewService(t.Context(), option.WithEndpoint(s.URL+"/"), auth)
	must(t, err)
	return c
}

// begin begins an upload and returns where its media goes.
func (s *env) begin(t *testing.T) string {
	t.Helper()
	a := s.do(t, "POST", "/upload/youtube/v3/videos?uploadType=resumable&part=id&key=callers-own", "{}")
	to, ok := strings.CutPrefix(a.header.Get("Location"), s.URL)
	leaks := strings.Contains(to, "callers-own") || strings.Contains(to, canary)
	if a.status != http.StatusOK || !ok || leaks {
		t.Fatalf("%d %v", a.status, a.header)
	}
	return to
}

// The Google client uploads in one request and in several, through the proxy to the end; each
// upload is one charge.
func TestUploadIsOneCharge(t *testing.T) {
	s := open(t, uploads(10))
	c := s.googleClient(t, option.WithoutAuthentication())
	for _, size := range []int{1000, granule + 1, 2*granule + 1000, 3 * granule} {
		_, err := c.Videos.Insert([]string{"id"}, &youtube.Video{}).
			Media(bytes.NewReader(make([]byte, size)), googleapi.ChunkSize(granule)).Do()
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
	n := s.Standin.Counts()
	if s.Used(t) != 4 || n.Units["video_insert"] != 4 || n.Continued != 2+3+4 {
		t.Errorf("the ledger has %d, the stand-in counted %+v", s.Used(t), n)
	}
	asked := s.Asked.Load()
	if asked.Header.Get("X-Goog-Api-Key") != canary || strings.Contains(asked.RequestURI, "quota") {
		t.Errorf("the last request of an upload left as %s %v", asked.RequestURI, asked.Header)
	}
}

// An upload that began through one proxy continues through any proxy with that key, whatever its
// ledger has left. Queries and cancellation are free.
func TestUploadGoesOn(t *testing.T) {
	s := open(t, uploads(1))
	to := s.begin(t)
	other := s.another(t, canary, "key1")
	tomorrow := noon.AddDate(0, 0, 1)
	must(t, other.Ledger.Suspend(t.Context(), quota.Suspension{Credential: "key1", Bucket: "video_insert", Until: tomorrow}))
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
		a := other.do(t, step.verb, to, step.body, "Content-Range", step.contentRange)
		if a.status != step.want {
			t.Errorf("%s %s: %d %s", step.verb, step.contentRange, a.status, a.body)
		}
	}
	n := s.Standin.Counts()
	if s.Used(t) != 1 || other.Used(t) != 0 || n.Units["video_insert"] != 1 || n.Continued != 5 {
		t.Errorf("the ledgers have %d and %d, the stand-in counted %+v", s.Used(t), other.Used(t),
			n)
	}
}

// another returns a proxy with a separate ledger in front of the same upstream.
func (s *env) another(t *testing.T, key, credential string) *env {
	t.Helper()
	return open(t, uploads(1), func(o *env) {
		o.Budget.Credential = credential
		o.Key = func() (string, error) { return key, nil }
		o.Endpoint = s.Endpoint
	})
}

// A session that was started elsewhere is charged once. A request that may not belong to a session
// is charged every time.
func TestUploadUnknown(t *testing.T) {
	s := open(t, uploads(100))
	paid := s.begin(t)
	session := strings.Replace(paid, "&quota_paid=1", "", 1)
	const made = "/upload/youtube/v3/videos?uploadType=resumable&upload_id=made-up"
	for _, c := range []struct {
		name, verb, path string
		want             int64 // units for three of them
	}{
		{"made up", "PUT", made, 1},
		{"the same by another verb", "POST", made, 0},
		{"unmarked", "PUT", session, 1},
		{"a new one under an old id", "POST", made + "3", 1},
		{"no type", "POST", "/upload/youtube/v3/videos?upload_id=made-up4", 3},
		{"another case", "POST", strings.Replace(made, "uploadType", "Upload_Type", 1), 3},
		{"too dear", "POST", "/upload/youtube/v3/captions?upload_id=made-up", 0},
	} {
		before := s.Used(t)
		for range 3 {
			a := s.do(t, c.verb, c.path, "film")
			if c.want == 1 && a.status != http.StatusNotFound && a.status != http.StatusOK {
				t.Errorf("%s: %d %s", c.name, a.status, a.body)
			}
		}
		if got := s.Used(t) - before; got != c.want {
			t.Errorf("%s: %d units for three requests, want %d", c.name, got, c.want)
		}
	}
	if n := s.Standin.Counts(); n.Units["video_insert"] > s.Used(t) {
		t.Errorf("the ledger has %d, the stand-in counted %+v", s.Used(t), n)
	}
}

// TestUploadMarked: the address of an upload leads back to the proxy, without secrets, and stays
// marked as paid when the upload moves.
func TestUploadMarked(t *testing.T) {
	const host = "https://www.googleapis.com"
	var location string
	s := open(t, uploads(100), func(s *env) {
		s.Answering(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
		})
	})
	const begin = "/upload/youtube/v3/videos?uploadType=resumable"
	const fresh = "/upload/youtube/v3/videos?quota_paid=1&upload_id=fresh"
	for _, c := range []struct{ verb, path, answer, want string }{
		{"POST", begin, host + fresh + "&key=leak", s.URL + fresh},
		{"PUT", fresh, host + strings.Replace(fresh, "fresh", "moved", 1),
			s.URL + strings.Replace(fresh, "fresh", "moved", 1)},
		{"PUT", begin + "&upload_id=elsewhere", host + fresh,
			s.URL + strings.Replace(fresh, "quota_paid=1&", "", 1)},
		{"POST", begin, "https://elsewhere.example/x", "https://elsewhere.example/x"},
	} {
		location = c.answer
		if got := s.do(t, c.verb, c.path, "film").header.Get("Location"); got != c.want {
			t.Errorf("%s %s: Location %s, want %s", c.verb, c.path, got, c.want)
		}
	}
	location = host + fresh
	to := s.do(t, "POST", begin, "{}", "X-Forwarded-Proto", "https").header.Get("Location")
	if !strings.HasPrefix(to, "https://"+s.local+"/upload/") {
		t.Errorf("behind TLS: %s", to)
	}
}

// When the upstream reports an exhausted quota in the middle of an upload, the bucket is suspended
// for the day of that response.
func TestUploadLearns(t *testing.T) {
	for name, marked := range map[string]bool{"paid for when it began": true, "unknown": false} {
		t.Run(name, func(t *testing.T) {
			s := open(t, uploads(10))
			to := s.begin(t)
			if !marked {
				to = strings.Replace(to, "&quota_paid=1", "", 1)
			}
			s.do(t, "PUT", to, "", "Content-Range", "bytes */*")
			s.SetNow(noon.AddDate(0, 0, 1))
			s.Answering(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"error":{"errors":[{"reason":"quotaExceeded"}]}}`)
			})
			s.do(t, "PUT", to, "film")
			usage, err := s.Budget.Usage(t.Context())
			want := time.Date(2026, time.June, 3, 7, 0, 0, 0, time.UTC)
			if err != nil || !usage.Buckets[1].SuspendedUntil.Equal(want) {
				t.Errorf("%+v, %v", usage.Buckets, err)
			}
		})
	}
}
