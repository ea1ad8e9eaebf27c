package meter_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// TestNeverLeft: the charge of a request without a connection is cancelled exactly.
func TestNeverLeft(t *testing.T) {
	onLedgers(t, func(t *testing.T, open opener) {
		s := open(t, &standin.YouTube{}, units(100))
		if _, _, err := s.get(t, chart); err != nil {
			t.Fatal(err)
		}
		stranger := httptest.NewUnstartedServer(s.Standin)
		stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
		stranger.StartTLS() // with an untrusted certificate
		t.Cleanup(stranger.Close)
		closed, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		closed.Close()
		for name, url := range map[string]string{
			"closed port": "http://" + closed.Addr().String(), "certificate": stranger.URL,
			"name": "https://no-such-host.invalid",
		} {
			s.Endpoint.Scheme, s.Endpoint.Host, _ = strings.Cut(url, "://")
			var tally meter.Tally
			r := s.request(meter.WithTally(t.Context(), &tally), "GET", url+chart, nil)
			if _, err := s.RoundTrip(r); err == nil || errors.Is(err, quota.ErrNotSent) {
				t.Errorf("%s: %v", name, err)
			}
			if n := len(s.entries(t)); n != 1 || tally.Sum() != 0 {
				t.Errorf("%s: %d entries, tally %v", name, n, tally.Units())
			}
			s.Counted(t, 1, 1)
		}
	})
}

// TestCancelledWhileDialling: a caller that gives up before the connection is made is not charged.
func TestCancelledWhileDialling(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(100))
	ctx, cancel := context.WithCancel(t.Context())
	base := s.Base.(*http.Transport)
	base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		if used := s.used(t, "default"); used != 1 {
			t.Errorf("%d units are charged before the connection is made", used)
		}
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r := s.request(ctx, "GET", chart, nil)
	if _, err := s.RoundTrip(r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.Counted(t, 0, 0)
}

// TestCancelFails: a charge that cannot be cancelled stays, and the failure is logged.
func TestCancelFails(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(100))
	base := s.Base.(*http.Transport)
	base.DialContext = func(context.Context, string, string) (net.Conn, error) {
		s.Ledger.Close()
		return nil, errors.New("no route")
	}
	var tally meter.Tally
	r := s.request(meter.WithTally(t.Context(), &tally), "GET", chart, nil)
	if _, err := s.RoundTrip(r); err == nil {
		t.Error("no error")
	}
	if tally.Sum() != 1 || !strings.Contains(s.Log.String(), "cannot cancel the charge") {
		t.Errorf("tally %v, log %s", tally.Units(), s.Log)
	}
}

// TestSentStaysCharged: a request that may have left stays charged.
func TestSentStaysCharged(t *testing.T) {
	for _, kind := range []string{"drop", "cut", "hang", "503", "403-quota"} {
		s := open(t, &standin.YouTube{Faults: []string{kind}}, units(100))
		ctx, cancel := context.WithCancel(t.Context())
		s.Standin.Now = func() time.Time { // asked when the request is being counted
			if kind == "hang" {
				cancel()
			}
			return s.Now()
		}
		status, _, err := s.ask(ctx, chart)
		if err == nil && status < 400 {
			t.Errorf("%s: %d %v", kind, status, err)
		}
		s.Server.Close() // waits for the handler
		s.Standin.Now = s.Now
		s.Counted(t, 1, 1)
		cancel()
	}
}

// TestNeverSentTwice: net/http would send a request again by itself when a kept connection is
// dropped (see TestDropIsSentAgain of the stand-in), and the upstream would bill it twice.
func TestNeverSentTwice(t *testing.T) {
	for name, c := range map[string]struct{ verb, path, body, header string }{
		"GET":                                   {"GET", chart, "none", ""},
		"GET with an empty body":                {"GET", chart, "", ""},
		"POST with a body":                      {"POST", rate, "{}", ""},
		"POST that may be repeated":             {"POST", rate, "none", "Idempotency-Key"},
		"POST with a body that may be repeated": {"POST", rate, "{}", "X-Idempotency-Key"},
	} {
		send := func(s *env) error {
			var body io.Reader
			if c.body != "none" {
				body = strings.NewReader(c.body) // net/http can send this body again
			}
			r := s.request(t.Context(), c.verb, c.path, body)
			if c.header != "" {
				r.Header[c.header] = nil
			}
			_, _, err := s.send(r)
			return err
		}
		t.Run(name, func(t *testing.T) {
			s := open(t, &standin.YouTube{Faults: []string{"drop@2"}}, units(1000))
			if _, _, err := s.get(t, chart); err != nil {
				t.Fatal(err)
			}
			if err := send(s); err == nil {
				t.Error("the dropped request has an answer")
			}
			c := s.Standin.Counts()
			if c.Requests != 2 || c.Units["default"] != s.used(t, "default") {
				t.Errorf("two calls made %+v, and the ledger has %d units", c, s.used(t, "default"))
			}
			if err := send(s); err != nil { // on a new connection
				t.Error(err)
			}
		})
	}
}

// TestOnTheWire: the guard against resending does not change the request on the wire.
func TestOnTheWire(t *testing.T) {
	for _, test := range []struct{ verb, path, body, want string }{
		{"GET", chart, "", ""},
		{"HEAD", chart, "", ""},
		{"DELETE", "/youtube/v3/videos?id=a", "", ""},
		{"POST", rate, "", "Content-Length: 0"},
		{"POST", rate, "{}", "Content-Length: 2"},
		{"POST", rate + "&repeatable=1", "", ""},
	} {
		s := openMetered(t, "generic")
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer listener.Close()
		seen := make(chan string, 1)
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			seen <- readRequest(conn)
		}()
		s.Endpoint.Host = listener.Addr().String()
		var content io.Reader
		if test.body != "" {
			content = strings.NewReader(test.body)
		}
		r := s.request(t.Context(), test.verb, test.path, content)
		r.URL.Host = s.Endpoint.Host
		if r.URL.Query().Has("repeatable") {
			r.Header.Set("Idempotency-Key", "1")
		}
		resp, err := s.RoundTrip(r)
		must(t, err)
		resp.Body.Close()
		head, sent, _ := strings.Cut(<-seen, "\r\n\r\n")
		if !strings.HasPrefix(head, test.verb+" "+test.path+" HTTP/1.1\r\n") ||
			sent != test.body || strings.Contains(head, "Transfer-Encoding") ||
			strings.Contains(head, "Content-Length") != (test.want != "") ||
			!strings.Contains(head, test.want) || strings.Count(head, canary) != 1 {
			t.Errorf("%s: sent\n%s\n\n%s", test.verb, head, sent)
		}
	}
}

// readRequest answers the first request on a connection with 204 and returns all that came until
// the client closed it.
func readRequest(conn net.Conn) string {
	var all strings.Builder
	in := bufio.NewReader(io.TeeReader(conn, &all))
	r, err := http.ReadRequest(in)
	if err != nil {
		return err.Error()
	}
	io.Copy(io.Discard, r.Body)
	io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	io.Copy(io.Discard, in)
	return all.String()
}

// TestSpeaksHTTP1: an HTTP/2 client would resend requests that a server refuses.
func TestSpeaksHTTP1(t *testing.T) {
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 1 {
				t.Errorf("asked by %s", r.Proto)
			}
		}))
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	defer upstream.Close()
	s := open(t, &standin.YouTube{}, units(100))
	base := meter.NewBase()
	defer base.CloseIdleConnections()
	trusting := upstream.Client().Transport.(*http.Transport).TLSClientConfig
	if base.TLSClientConfig == nil {
		base.TLSClientConfig = new(tls.Config)
	}
	base.TLSClientConfig.RootCAs = trusting.RootCAs
	s.Base, s.Endpoint.Scheme, s.Endpoint.Host = base, "https", upstream.Listener.Addr().String()
	resp, err := s.RoundTrip(s.request(t.Context(), "GET", upstream.URL+chart, nil))
	must(t, err)
	resp.Body.Close()
	if resp.ProtoMajor != 1 {
		t.Errorf("answered by %s", resp.Proto)
	}
}
