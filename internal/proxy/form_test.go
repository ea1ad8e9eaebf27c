package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw sends bytes as they are, and returns the status of the first answer; 0 for none.
func (s *station) raw(t testing.TB, request string) int {
	t.Helper()
	conn, err := net.Dial("tcp", s.local())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	go io.WriteString(conn, strings.ReplaceAll(request, "HOST", "Host: "+s.local()))
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

// TestAmbiguousForm: what the upstream could read differently than it is charged is refused. It
// costs nothing, and nothing of it leaves: nothing is dropped or mended on the way.
func TestAmbiguousForm(t *testing.T) {
	s := open(t, units(1000))
	const videos = " /youtube/v3/videos HTTP/1.1\r\nHOST\r\n"
	const form = "Content-Type: application/x-www-form-urlencoded\r\n"
	for request, want := range map[string]int{
		// its host is in the target
		"GET http://youtube.googleapis.com/youtube/v3/videos HTTP/1.1\r\nHOST\r\n\r\n": 403,
		"CONNECT youtube.googleapis.com:443 HTTP/1.1\r\nHOST\r\n\r\n":                  403,
		"CONNECT" + videos + "\r\n":           400,
		"TRACE" + videos + "\r\n":             400,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":    403,
		"OPTIONS * HTTP/1.1\r\nHOST\r\n\r\n":  400,
		"GET *" + " HTTP/1.1\r\nHOST\r\n\r\n": 400,

		"GET /youtube/v3/captions/..%2fvideos HTTP/1.1\r\nHOST\r\n\r\n":     400,
		"GET /youtube/v3/captions/../videos HTTP/1.1\r\nHOST\r\n\r\n":       400,
		"GET //youtube/v3/videos HTTP/1.1\r\nHOST\r\n\r\n":                  400,
		"GET /youtube/v3/videos/ HTTP/1.1\r\nHOST\r\n\r\n":                  400,
		"GET /youtube/v3/videos?a=1;b=2 HTTP/1.1\r\nHOST\r\n\r\n":           400,
		"GET /youtube/v3/videos?part=%zz HTTP/1.1\r\nHOST\r\n\r\n":          400,
		"GET /youtube/v3/videos?key=a&part=%zz HTTP/1.1\r\nHOST\r\n\r\n":    400,
		"GET /youtube/v3/videos?a=b#c HTTP/1.1\r\nHOST\r\n\r\n":             400,
		"GET /youtube/v3/captions/%00 HTTP/1.1\r\nHOST\r\n\r\n":             400,
		"GET /youtube/v3/captions/%zz HTTP/1.1\r\nHOST\r\n\r\n":             400,
		"GET /youtube/v3/captions/a\x01 HTTP/1.1\r\nHOST\r\n\r\n":           400,
		"GET /youtube/v3/videos?%24httpMethod=PUT HTTP/1.1\r\nHOST\r\n\r\n": 400,
		"GET /youtube/v3/videos?access_token=a HTTP/1.1\r\nHOST\r\n\r\n":    400,
		"GET /youtube/v3/videos?userProject=a HTTP/1.1\r\nHOST\r\n\r\n":     400,
		"GET /youtube/v3/videos?%24userProject=a HTTP/1.1\r\nHOST\r\n\r\n":  400,
		"GET /youtube/v3/videos?$ct=text/plain HTTP/1.1\r\nHOST\r\n\r\n":    400,

		"GET" + videos + "HOST\r\n\r\n":                                               400,
		"GET" + videos + "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n":          400,
		"GET" + videos + "Upgrade: h2c, websocket\r\nConnection: Upgrade\r\n\r\n":     400,
		"GET" + videos + "Connection: close, X-HTTP-Method-Override\r\n\r\n":          400,
		"GET" + videos + "Connection: Authorization\r\n\r\n":                          400,
		"GET" + videos + "X-Goog-User-Project: other\r\n\r\n":                         400,
		"GET" + videos + "X-Goog-User-Project:\r\nX-Goog-User-Project: other\r\n\r\n": 400,
		"GET" + videos + "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n": 400,
		"GET" + videos + "Authorization: Basic YTpi\r\n\r\n":                          400,
		"GET" + videos + "X-HTTP-Method-Override: DELETE\r\n\r\n":                     400,
		"GET" + videos + "Content-Length: 2\r\n\r\n{}":                                400,
		"GET" + videos + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                400,
		"DELETE" + videos + "Content-Length: 2\r\n\r\n{}":                             400,

		"POST" + videos + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}":                                               400,
		"POST" + videos + "Content-Length: 2\r\nTransfer-Encoding: gzip\r\n\r\n{}":                                         501,
		"POST" + videos + "Content-Length: 2\r\nExpect: 200-ok\r\n\r\n{}":                                                  417,
		"POST" + videos + "Content-Length: 2\r\nExpect: 100-continue, a\r\n\r\n{}":                                         400,
		"POST" + videos + "Trailer: X-HTTP-Method-Override\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":                 400,
		"POST" + videos + form + "Content-Length: 14\r\n\r\n_method=DELETE":                                                400,
		"POST" + videos + "X-HTTP-Method-Override: GET\r\nX-HTTP-Method-Override: DELETE\r\nContent-Length: 0\r\n\r\n":     400,
		"POST" + videos + "X-HTTP-Method-Override: DELETE\r\nContent-Length: 0\r\n\r\n":                                    400,
		"POST" + videos + "X-HTTP-Method: GET\r\nContent-Length: 0\r\n\r\n":                                                400,
		"POST" + videos + "X-HTTP-Method-Override: GET\r\nContent-Length: 2\r\n\r\n{}":                                     400,
		"POST" + videos + form + "X-HTTP-Method-Override: GET\r\nContent-Length: 9\r\n\r\n_method=a":                       400,
		"POST" + videos + form + "X-HTTP-Method-Override: GET\r\nContent-Length: 7\r\n\r\na=1;b=2":                         400,
		"POST" + videos + form + "X-HTTP-Method-Override: GET\r\nContent-Length: 14\r\n\r\naccess_token=a":                 400,
		"POST" + videos + form + "X-HTTP-Method-Override: GET\r\nContent-Length: 13\r\n\r\nuserProject=a":                  400,
		"POST" + videos + form + "X-HTTP-Method-Override: GET\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nid=ab": 400,
		"POST /upload" + videos[1:] + form + "X-HTTP-Method-Override: GET\r\nContent-Length: 5\r\n\r\nid=ab":               400,

		"PATCH" + videos + "\r\n":                           405,
		"HEAD" + videos + "\r\n":                            405,
		"GET /youtube/v3/vide%6Fs HTTP/1.1\r\nHOST\r\n\r\n": 404,
		"GET /batch HTTP/1.1\r\nHOST\r\n\r\n":               404,
		"GET / HTTP/1.1\r\nHOST\r\n\r\n":                    404,
		"GET /youtube/v3/videos HTTP/1.0\r\n\r\n":           403, // it names nobody
	} {
		if got := s.raw(t, request); got != want {
			t.Errorf("%q: %d, want %d", request, got, want)
		}
		if c := s.standin.Counts(); c.Requests != 0 || s.used(t) != 0 {
			t.Fatalf("%q: %d units for %+v", request, s.used(t), c)
		}
	}
}

// TestPlainForm: what looks odd and means one thing alone is forwarded as it came, and charged
// once.
func TestPlainForm(t *testing.T) {
	s := open(t, units(1000))
	const videos = " /youtube/v3/videos?part=id&id=a HTTP/1.1\r\nHOST\r\n"
	units := int64(0)
	for request, cost := range map[string]int64{
		// as Java's client asks
		"GET" + videos + "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n": 1,
		"GET" + videos + "Connection: keep-alive\r\nTE: trailers\r\n\r\n":                                          1,
		"GET" + videos + "\r\nGET /youtube/v3/videos?access_token=a HTTP/1.1\r\nHOST\r\n\r\n":                      1,
		"POST /youtube/v3/videos/rate?id=a HTTP/1.1\r\nHOST\r\nContent-Length: 0\r\n\r\n":                          50,
		"POST /youtube/v3/videos/rate?id=a HTTP/1.1\r\nHOST\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}":   50,
		// One body, by its chunks; what follows it is another request. Nothing of the length is
		// sent on.
		"POST /youtube/v3/videos/rate?id=a HTTP/1.1\r\nHOST\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": 50,
		"POST /youtube/v3/videos/rate?id=a HTTP/1.1\r\nHOST\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}":              50,
		"POST /youtube/v3/videos HTTP/1.1\r\nHOST\r\nX-HTTP-Method-Override: GET\r\nContent-Type: application/x-www-form-urlencoded\r\n" +
			"Content-Length: 22\r\n\r\npart=id&id=a&key=other": 1,
	} {
		if got := s.raw(t, request); got != 200 {
			t.Errorf("%q: %d", request, got)
		}
		units += cost
		s.awaitUsed(t, units)
		asked := s.asked.Load()
		for _, name := range []string{"Upgrade", "Http2-Settings", "Connection", "Expect"} {
			if asked.Header.Get(name) != "" {
				t.Errorf("%q: the upstream was sent %s: %s", request, name, asked.Header.Get(name))
			}
		}
	}
	if c := s.standin.Counts(); c.Requests != 8 || c.Units["default"] != units {
		t.Errorf("%d units, and the stand-in counted %+v", units, c)
	}
}
