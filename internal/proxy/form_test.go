package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// raw sends a text in which | is a line end and HOST the Host header, and returns the status of the
// first response, or 0.
func (s *env) raw(t testing.TB, request string) int {
	t.Helper()
	conn, err := net.Dial("tcp", s.local)
	must(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	lines := strings.NewReplacer("|", "\r\n", "HOST", "Host: "+s.local)
	go lines.WriteString(conn, request)
	in := bufio.NewReader(conn)
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return 0
		}
		if resp.StatusCode != http.StatusContinue {
			return resp.StatusCode
		}
	}
}

// TestAmbiguousForm: a request that the upstream could read differently is refused, for free and
// unsent. The proxy does not drop or repair parts of it.
func TestAmbiguousForm(t *testing.T) {
	s := open(t, units(1000))
	const videos = " /youtube/v3/videos HTTP/1.1|HOST|"
	const form = "Content-Type: application/x-www-form-urlencoded|"
	const override, chunked = "X-HTTP-Method-Override: ", "Transfer-Encoding: chunked|"
	const length, get = "Content-Length: ", override + "GET|"
	requests := map[string]int{
		// its host is in the target
		"GET http://youtube.googleapis.com/youtube/v3/videos HTTP/1.1|HOST||": 403,
		"CONNECT youtube.googleapis.com:443 HTTP/1.1|HOST||":                  403,
		"CONNECT" + videos + "|":                                              400,
		"TRACE" + videos + "|":                                                400,
		"PRI * HTTP/2.0||SM||":                                                403,
		"OPTIONS * HTTP/1.1|HOST||":                                           400,
		"GET *" + " HTTP/1.1|HOST||":                                          400,

		"GET /youtube/v3/captions/a\x01 HTTP/1.1|HOST||": 400,

		"GET" + videos + "HOST||":                                            400,
		"GET" + videos + "X_Goog_Api_Key: mine||":                            400,
		"GET" + videos + "Upgrade: websocket|Connection: Upgrade||":          400,
		"GET" + videos + "Upgrade: h2c, websocket|Connection: Upgrade||":     400,
		"GET" + videos + "Connection: close, X-HTTP-Method-Override||":       400,
		"GET" + videos + "Connection: Authorization||":                       400,
		"GET" + videos + "X-Goog-User-Project: other||":                      400,
		"GET" + videos + "X-Goog-User-Project:|X-Goog-User-Project: other||": 400,
		"GET" + videos + "Authorization: Bearer a|Authorization: Bearer b||": 400,
		"GET" + videos + "Authorization: Basic YTpi||":                       400,
		"GET" + videos + override + "DELETE||":                               400,
		"GET" + videos + "X-HTTP-Method: DELETE||":                           400,
		"GET" + videos + "X-Method-Override: DELETE||":                       400,
		"GET" + videos + length + "2||{}":                                    400,
		"GET" + videos + chunked + "|0||":                                    400,
		"DELETE" + videos + length + "2||{}":                                 400,

		"POST" + videos + length + "2|" + length + "3||{}":                             400,
		"POST" + videos + length + "2|Transfer-Encoding: gzip||{}":                     501,
		"POST" + videos + length + "2|Expect: 200-ok||{}":                              417,
		"POST" + videos + length + "2|Expect: 100-continue, a||{}":                     400,
		"POST" + videos + "Trailer: X-HTTP-Method-Override|" + chunked + "|0||":        400,
		"POST" + videos + form + length + "14||_method=DELETE":                         400,
		"POST" + videos + get + override + "DELETE|" + length + "0||":                  400,
		"POST" + videos + override + "DELETE|" + length + "0||":                        400,
		"POST" + videos + get + length + "2||{}":                                       400,
		"POST" + videos + form + get + length + "7||a=1;b=2":                           400,
		"POST" + videos + form + get + length + "14||access_token=a":                   400,
		"POST" + videos + form + get + length + "13||userProject=a":                    400,
		"POST" + videos + form + get + "Content-Encoding: gzip|" + length + "5||id=ab": 400,
		"POST /upload" + videos[1:] + form + get + length + "5||id=ab":                 400,

		"PATCH" + videos + "|":              405,
		"HEAD" + videos + "|":               405,
		"GET /batch HTTP/1.1|HOST||":        404,
		"GET / HTTP/1.1|HOST||":             404,
		"GET /youtube/v3/videos HTTP/1.0||": 403, // it names nobody
	}
	for target := range strings.FieldsSeq(`
		/youtube/v3/captions/..%2fvideos /youtube/v3/captions/../videos //youtube/v3/videos
		/youtube/v3/captions/%zz
		/youtube/v3/videos?a=1;b=2 /youtube/v3/videos?part=%zz /youtube/v3/videos?key=a&part=%zz
		/youtube/v3/videos?access_token=a /youtube/v3/videos?userProject=a
		/youtube/v3/videos?%24userProject=a /youtube/v3/videos?$httpMethod=DELETE
		/youtube/v3/videos?%24httpHeaders=X-Goog-FieldMask%3A%2A`) {
		requests["GET "+target+" HTTP/1.1|HOST||"] = 400
	}
	for request, want := range requests {
		if got := s.raw(t, request); got != want {
			t.Errorf("%q: %d, want %d", request, got, want)
		}
		if c := s.Standin.Counts(); c.Requests != 0 || s.Used(t) != 0 {
			t.Fatalf("%q: %d units for %+v", request, s.Used(t), c)
		}
	}
}

// TestPlainForm: an odd but unambiguous request is forwarded unchanged and charged once.
func TestPlainForm(t *testing.T) {
	s := open(t, units(1000))
	const videos = " /youtube/v3/videos?part=id&id=a HTTP/1.1|HOST|"
	const rate = "POST /youtube/v3/videos/rate?id=a HTTP/1.1|HOST|"
	units := int64(0)
	for request, cost := range map[string]int64{
		// as Java's client asks
		"GET" + videos + "Upgrade: h2c|HTTP2-Settings: AAMAAABk|" +
			"Connection: Upgrade, HTTP2-Settings||": 1,
		"GET" + videos + "Connection: keep-alive|TE: trailers||":                  1,
		"GET" + videos + "|GET /youtube/v3/videos?access_token=a HTTP/1.1|HOST||": 1,
		rate + "Content-Length: 0||":                                              50,
		rate + "Content-Length: 2|Content-Length: 2||{}":                          50,
		// One body, by its chunks; what follows it is another request. Nothing of the length is
		// sent on.
		rate + "Content-Length: 4|Transfer-Encoding: chunked||0||": 50,
		rate + "Expect: 100-continue|Content-Length: 2||{}":        50,
		"POST /youtube/v3/videos HTTP/1.1|HOST|X-HTTP-Method-Override: GET|" +
			"Content-Type: application/x-www-form-urlencoded|Content-Length: 22||" +
			"part=id&id=a&key=other": 1,
	} {
		if got := s.raw(t, request); got != 200 {
			t.Errorf("%q: %d", request, got)
		}
		units += cost
		s.awaitUsed(t, units)
		asked := s.Asked.Load()
		for _, name := range []string{"Upgrade", "Http2-Settings", "Connection", "Expect"} {
			if asked.Header.Get(name) != "" {
				t.Errorf("%q: the upstream was sent %s: %s", request, name, asked.Header.Get(name))
			}
		}
	}
	if c := s.Standin.Counts(); c.Requests != 8 || c.Units["default"] != units {
		t.Errorf("%d units, and the stand-in counted %+v", units, c)
	}
}

// FuzzRaw sends bytes to the proxy on a real connection. The upstream, by its own reading, must not
// bill more than the ledger was charged.
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
		"PUT /upload/youtube/v3/videos?upload_id=a HTTP/1.1|Host: H|" +
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
	s := open(f, limits, func(s *env) {
		s.proxy.Limits.Pause, s.proxy.Hosts = 50*time.Millisecond, []string{"H"}
		s.Standin.Limits = map[string]int64{}
		for _, l := range limits {
			s.Standin.Limits[l.Bucket] = quota.MaxUnits
		}
	})
	billed := map[string]int64{} // counts of earlier runs
	charged := map[string]int64{}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "quota_paid") { // a mark that the proxy gives is not signed
			return
		}
		conn, err := net.Dial("tcp", s.local)
		must(t, err)
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		io.WriteString(conn, text)
		conn.(*net.TCPConn).CloseWrite()
		answers, _ := io.ReadAll(conn) // until the proxy has answered all and closed the connection
		conn.Close()
		await(t, func() bool { return s.proxy.UnderWay() == 0 })
		usage, err := s.Budget.Usage(t.Context())
		must(t, err)
		counts := s.Standin.Counts()
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
		if asked := s.Asked.Load(); asked != nil {
			checkAsked(t, text, asked)
		}
	})
}

// checkAsked checks the guarantees of the proxy for the last request that reached the upstream.
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
