package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// FuzzRaw sends bytes to the proxy, on a connection as real as any. Whatever they are, the upstream
// has billed no more for what reached it than the ledger was charged, by its own reading of what it
// was sent.
func FuzzRaw(f *testing.F) {
	const videos = " /youtube/v3/videos?part=id HTTP/1.1|Host: H|"
	const rate = "POST /youtube/v3/videos/rate?id=a HTTP/1."
	const override = "X-HTTP-Method-Override: GET|"
	for _, seed := range []string{
		"GET" + videos + "|",
		"GET" + videos + "|GET /youtube/v3/search?part=id HTTP/1.1|Host: H||",
		"GET /youtube/v3/captions/..%2fvideos HTTP/1.1|Host: H||",
		"GET /youtube/v3/captions/x?a=1;b=2&part=%zz HTTP/1.1|Host: H||",
		"POST" + videos + override + "Connection: X-HTTP-Method-Override|Content-Length: 0||",
		"POST" + videos + override + "Content-Type: application/x-www-form-urlencoded|" +
			"Content-Length: 4||id=a",
		rate + "1|Host: H|Content-Length: 5|Transfer-Encoding: chunked||0||GET" + videos + "|",
		rate + "0|Host: H|Connection: keep-alive|Transfer-Encoding: chunked||0||DELETE" + videos +
			"|",
		"POST /upload/youtube/v3/videos?uploadType=resumable HTTP/1.1|Host: H|" +
			"Content-Length: 2||{}",
		"PUT /upload/youtube/v3/videos?upload_id=a&quota_paid=b HTTP/1.1|Host: H|" +
			"Content-Length: 2|Content-Range: bytes 0-1/2||ab",
		"PUT /resumable/upload/youtube/v3/captions?part=id HTTP/1.1|Host: H|" +
			"Transfer-Encoding: chunked|Trailer: X-HTTP-Method||1|a|0|X-HTTP-Method: DELETE||",
		"GET" + videos + "Upgrade: websocket|Connection: Upgrade||",
		"CONNECT H:443 HTTP/1.1|Host: H||",
		"GET http://H/youtube/v3/videos HTTP/1.1|Host: H|Host: H||",
	} {
		f.Add(strings.ReplaceAll(seed, "|", "\r\n"))
	}
	var limits []quota.Limit
	for _, b := range costs.Default().Buckets() {
		limits = append(limits, quota.Limit{Bucket: b.Name, Units: quota.MaxUnits,
			Window: quota.Sliding(time.Hour)})
	}
	s := open(f, limits, func(s *station) {
		s.Limits.Grace, s.Hosts = 50*time.Millisecond, []string{"H"}
		s.standin.Limits = map[string]int64{}
		for _, l := range limits {
			s.standin.Limits[l.Bucket] = quota.MaxUnits
		}
	})
	billed := map[string]int64{} // each run begins where the last ended
	charged := map[string]int64{}
	f.Fuzz(func(t *testing.T, text string) {
		conn, err := net.Dial("tcp", s.local())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		io.WriteString(conn, text)
		conn.(*net.TCPConn).CloseWrite()
		answers, _ := io.ReadAll(conn) // until the proxy has answered all and closed the connection
		conn.Close()
		await(t, func() bool { return s.UnderWay() == 0 })
		usage, err := s.gate.Budget.Usage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		counts := s.standin.Counts()
		for _, b := range usage.Buckets {
			now := b.Limits[0].Used
			if by, of := counts.Total[b.Bucket]-billed[b.Bucket], now-charged[b.Bucket]; by > of {
				t.Errorf("%q: billed %d units of %s, charged %d: %.200s", text, by, b.Bucket, of,
					answers)
			}
			billed[b.Bucket], charged[b.Bucket] = counts.Total[b.Bucket], now
		}
		if counts.KeyInURL > 0 || counts.Refused > 0 {
			t.Errorf("%q: %+v", text, counts)
		}
		if asked := s.asked.Load(); asked != nil {
			checkAsked(t, text, asked)
		}
	})
}

// checkAsked holds the last request that reached the upstream to what the proxy promises of all.
func checkAsked(t *testing.T, text string, asked *http.Request) {
	t.Helper()
	for _, name := range []string{"Upgrade", "Origin", "Referer", "Cookie", "Trailer",
		"X-Quota-Token", "X-Http-Method"} {
		if asked.Header.Get(name) != "" {
			t.Errorf("%q: the upstream was sent %s", text, name)
		}
	}
	if n := len(asked.Header["X-Http-Method-Override"]); n > 1 ||
		strings.Contains(asked.URL.EscapedPath(), "%2") {
		t.Errorf("%q: the upstream was asked for %s with %v", text, asked.RequestURI, asked.Header)
	}
}
