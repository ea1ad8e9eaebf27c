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

// uploads is a limit of so many uploads, and as many units of the default bucket.
func uploads(n int64) []quota.Limit {
	of := units(n)
	return append(of, quota.Limit{Bucket: "video_insert", Units: n, Window: of[0].Window})
}

// googleClient is the real one, pointed at the proxy.
func (s *station) googleClient(t *testing.T, auth option.ClientOption) *youtube.Service {
	t.Helper()
	c, err := youtube.NewService(t.Context(), option.WithEndpoint(s.front.URL+"/"), auth)
	must(t, err)
	return c
}

// begin begins an upload and returns where its media goes.
func (s *station) begin(t *testing.T) string {
	t.Helper()
	a := s.do(t, "POST", "/upload/youtube/v3/videos?uploadType=resumable&part=id&key=callers-own", "{}")
	to, ok := strings.CutPrefix(a.header.Get("Location"), s.front.URL)
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

// An upload that was begun through one proxy goes on through any with that key, whatever its ledger
// knows and has left; it can be asked after and cancelled for nothing.
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

// What one credential or key has paid for is not paid for by another.
func TestUploadOfAnother(t *testing.T) {
	s := open(t, uploads(1))
	to := s.begin(t)
	for _, other := range []*station{
		s.another(t, "key-of-another", "key1"), s.another(t, canary, "key2"),
	} {
		for range 2 {
			other.do(t, "PUT", to, "film")
		}
		entries, err := other.Ledger.Entries(t.Context(), quota.Query{
			Credential: other.Budget.Credential, Bucket: "video_insert",
		})
		if err != nil || len(entries) != 1 {
			t.Errorf("two requests were charged as %v, %v", entries, err)
		}
	}
}

// another is a proxy with a ledger of its own in front of the same upstream.
func (s *station) another(t *testing.T, key, credential string) *station {
	t.Helper()
	return open(t, uploads(1), func(o *station) {
		o.Budget.Credential = credential
		o.Key = func() (string, error) { return key, nil }
		o.Host, o.proxy.Upstreams[0].Endpoint = s.Host, s.proxy.Upstreams[0].Endpoint
	})
}

// A session of unknown origin, and an address that was changed, are no way around paying: each is
// an upload of its own, charged once. What is not surely a session is charged every time.
func TestUploadUnknown(t *testing.T) {
	s := open(t, uploads(100))
	paid := s.begin(t)
	session, _, _ := strings.Cut(paid, "&quota_paid=")
	const made = "/upload/youtube/v3/videos?uploadType=resumable&upload_id=made-up"
	for _, c := range []struct {
		name, verb, path string
		want             int64 // units for three of them
	}{
		{"made up", "PUT", made, 1},
		{"the same by another verb", "POST", made, 0},
		{"made up, and signed", "PUT", made + "2&quota_paid=" + strings.Repeat("A", 43), 1},
		{"unsigned", "PUT", session, 1},
		{"signed twice", "PUT", paid + "&quota_paid=x", 0}, // as the unsigned
		{"another part", "PUT", strings.Replace(paid, "part=id", "part=snippet", 1), 1},
		{"another path", "PUT", strings.Replace(paid, "/videos", "/thumbnails/set", 1), 50},
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

// An address is signed in the answer to what was charged, and where the same upload is given
// another one. Signed in another answer, it would be an upload for nothing.
func TestUploadSigned(t *testing.T) {
	const host = "https://www.googleapis.com"
	var location string
	s := open(t, uploads(100), func(s *station) {
		s.Answering(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
		})
	})
	const begin = "/upload/youtube/v3/videos?uploadType=resumable"
	ask := func(verb, path, answer string) (string, bool) {
		location = answer
		a := s.do(t, verb, path, "film")
		to, own := strings.CutPrefix(a.header.Get("Location"), s.front.URL)
		if own && (strings.Contains(to, "leak") || strings.Count(to, "quota_paid=") > 1) {
			t.Errorf("Location %s", to)
		}
		return to, own
	}
	const fresh = host + "/upload/youtube/v3/videos?upload_id=fresh&key=leak&quota_paid=leak"
	paid, own := ask("POST", begin, fresh)
	if !own || !strings.HasPrefix(paid, "/upload/youtube/v3/videos?upload_id=fresh&quota_paid=") {
		t.Fatalf("began at %s", paid)
	}
	moved := fresh + "&part=id"
	for _, c := range []struct {
		name, path, answer string
		signed             bool
	}{
		{"moved", paid, moved, true},
		{"another", paid, host + "/upload/youtube/v3/videos?upload_id=other", false},
		{"elsewhere", paid, host + "/upload/youtube/v3/captions?upload_id=fresh", false},
		{"unknown", begin + "&upload_id=fresh", moved, false},
	} {
		to, own := ask("PUT", c.path, c.answer)
		if !own || strings.Contains(to, "quota_paid") != c.signed {
			t.Errorf("%s: Location %s", c.name, to)
		}
	}
	for _, other := range []string{rate, "/upload/youtube/v3/thumbnails/set?uploadType=resumable"} {
		if to, own := ask("POST", other, fresh); !own || strings.Contains(to, "quota_paid") {
			t.Errorf("in the answer to %s: Location %s", other, to)
		}
	}
	const elsewhere = "https://elsewhere.example/x"
	if to, own := ask("POST", begin, elsewhere); own || to != elsewhere {
		t.Errorf("of another kind: %s", to)
	}
	location = fresh
	to := s.do(t, "POST", begin, "{}", "X-Forwarded-Proto", "https").header.Get("Location")
	if !strings.HasPrefix(to, "https://"+s.local()+"/upload/") {
		t.Errorf("behind TLS: %s", to)
	}
	if used := s.Used(t); used != 104 { // 50 of them for each of the others
		t.Errorf("the ledger has %d units", used)
	}
}

// When the upstream says in the middle of an upload that the quota is gone, its bucket is closed,
// for the day in which it said so.
func TestUploadLearns(t *testing.T) {
	for name, signed := range map[string]bool{"paid for when it began": true, "unknown": false} {
		t.Run(name, func(t *testing.T) {
			s := open(t, uploads(10))
			to := s.begin(t)
			if !signed {
				to, _, _ = strings.Cut(to, "&quota_paid")
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
