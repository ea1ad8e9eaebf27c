package meter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"

	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// TestRefused: a request without a price (I6), or with a key in its URL, is not sent.
func TestRefused(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(100))
	for reason, paths := range map[error][]string{
		quota.ErrUnpriced: {"/youtube/v3/unknown", "/youtube/v3//videos",
			"/oauth2/v1/tokeninfo", ""},
		meter.ErrKeyInURL: {chart + "&key=" + canary, chart + "&access_token=" + canary,
			chart + "&%6Bey=" + canary, chart + "&$key=" + canary, chart + "&key",
			chart + "&a;key=" + canary, chart + "&key=" + canary + "%zz"},
	} {
		for _, path := range paths {
			_, err := s.RoundTrip(s.request(t.Context(), "GET", path, nil))
			refused(t, err, reason)
		}
	}
	s.Counted(t, 0, 0)
}

// TestKeyIsNotSentInTheClear: whatever the endpoint, the key is sent encrypted or to this machine.
func TestKeyIsNotSentInTheClear(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(100))
	address := s.Server.Listener.Addr().String()
	anywhere := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	s.Base = &http.Transport{DisableKeepAlives: true, DialContext: anywhere}
	port := address[strings.LastIndex(address, ":"):]
	for host, private := range map[string]bool{
		"localhost": true, "127.1.2.3": true, "[::1]": true,
		"upstream.example": false, "10.1.2.3": false, "localhost.example": false,
	} {
		s.Endpoint.Host = host + port
		before := s.Served.Load()
		_, _, err := read(s.RoundTrip(s.request(t.Context(), "GET", "http://"+s.Endpoint.Host+chart, nil)))
		if private && err != nil || private != (s.Served.Load() > before) {
			t.Errorf("%s: %v, %d requests", host, err, s.Served.Load()-before)
		}
		if !private {
			refused(t, err, meter.ErrInTheClear)
		}
	}
	s.Counted(t, 3, 3)
}

// TestKeyGoesToTheUpstreamOnly is I8.
func TestKeyGoesToTheUpstreamOnly(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(100))
	var strangers atomic.Int64
	stranger := httptest.NewServer(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
	defer stranger.Close()
	for _, url := range []string{stranger.URL, s.Server.URL + "0",
		strings.Replace(s.Server.URL, "http:", "https:", 1),
		strings.Replace(stranger.URL, "//", "//"+s.Endpoint.Host+"@", 1)} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+chart, nil)
		if err != nil {
			continue // no such port
		}
		_, err = s.RoundTrip(r)
		refused(t, err, meter.ErrForeignHost)
	}
	s.Server.Config.Handler = http.RedirectHandler(stranger.URL+chart, http.StatusFound)
	_, _, err := s.get(t, chart)
	refused(t, err, meter.ErrForeignHost)
	if strangers.Load() != 0 {
		t.Error("another host got a request")
	}
	s.Counted(t, 0, 1) // the request that was redirected
}

func TestKeyShowsNowhere(t *testing.T) {
	s := open(t, &standin.YouTube{Faults: []string{"403-quota@2", "drop@3"}}, units(100))
	r := s.request(t.Context(), "GET", chart, nil)
	r.Header.Set("X-Goog-Api-Key", "the client's own")
	for range 4 {
		resp, err := (&http.Client{Transport: s}).Do(r)
		if text := fmt.Sprintf("%v", err); strings.Contains(text, canary) {
			t.Errorf("the key is in %s", text)
		}
		if err != nil {
			continue
		}
		if resp.Request.Header.Get("X-Goog-Api-Key") == canary {
			t.Error("the answer leads to the key")
		}
		resp.Body.Close()
	}
	if r.Header.Get("X-Goog-Api-Key") != "the client's own" {
		t.Error("the client's request was changed")
	}
	if text := fmt.Sprint(s.entries(t), s.Log); strings.Contains(text, canary) {
		t.Errorf("the key is in %s", text)
	}
}

// TestRawAnswers: the key does not appear in transport errors, informational responses or trailers.
// The gate does not read an excessive header into memory.
func TestRawAnswers(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"
	const empty = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	for name, test := range map[string]struct {
		answer string
		ok     bool // the answer is a valid response
	}{
		"no answer":     {"KEY KEY\r\n\r\n", false},
		"a header":      {"HTTP/1.1 200 OK\r\nfoo KEY\r\n\r\n", false},
		"a length":      {"HTTP/1.1 200 OK\r\nContent-Length: KEY\r\n\r\n", false},
		"a status of 0": {"HTTP/1.1 000 KEY\r\nContent-Length: 0\r\n\r\n", false},
		"an early hint": {"HTTP/1.1 103 Early Hints\r\nLink: <KEY>\r\n\r\n" + empty, true},
		"a long header": {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Long: " +
			strings.Repeat("x", 2<<20) + "\r\n\r\n", false},
		"a trailer":      {chunked + "0\r\nX-Trailer: KEY\r\n\r\n", true},
		"a bad trailer":  {chunked + "0\r\nKEY KEY\r\n\r\n", false},
		"a broken chunk": {chunked + "KEY\r\n", false},
	} {
		s := open(t, &standin.YouTube{}, units(100))
		s.Answering(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				io.WriteString(conn, strings.ReplaceAll(test.answer, "KEY",
					r.Header.Get("X-Goog-Api-Key")))
				conn.Close()
			}
		})
		var shown strings.Builder
		trace := &httptrace.ClientTrace{
			Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
				fmt.Fprint(&shown, h)
				return nil
			},
		}
		resp, err := s.RoundTrip(s.request(httptrace.WithClientTrace(t.Context(), trace), "GET",
			chart, nil))
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			fmt.Fprint(&shown, resp.Header, resp.Trailer)
		}
		fmt.Fprint(&shown, err)
		if (err == nil) != test.ok || strings.Contains(shown.String(), canary) {
			t.Errorf("%s: %s", name, &shown)
		}
		s.Counted(t, 0, 1) // it was sent, though not to the stand-in
	}
}

// TestKeyIsHiddenEscaped: the gate removes the key from error bodies and headers that repeat it,
// whether it is plain or escaped for a URL.
func TestKeyIsHiddenEscaped(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(1000))
	const key = "SECRET+ab/cd==long"
	s.Key = func() (string, error) { return key, nil }
	for _, said := range []string{key, "SECRET%2Bab%2Fcd%3D%3Dlong", "SECRET+ab%2Fcd==long"} {
		s.Answering(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/a?api_key="+said+"&b")
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "a "+said+" b")
		})
		resp, err := s.RoundTrip(s.request(t.Context(), "GET", chart, nil))
		must(t, err)
		location, length := resp.Header.Get("Location"), resp.ContentLength
		_, body, err := read(resp, err)
		if err != nil || location != "/a?api_key=(not shown)&b" || body != "a (not shown) b" ||
			length != int64(len(body)) {
			t.Errorf("%s: %q of %d bytes in %q, %v", said, body, length, location, err)
		}
	}
}

// TestHintsWithoutEnd: an upstream that sends hints without end counts as not responding, even if
// the caller has a trace that accepts the hints.
func TestHintsWithoutEnd(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(100))
	ended := make(chan bool)
	s.Answering(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		conn, _, err := http.NewResponseController(w).Hijack()
		for err == nil {
			_, err = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n")
		}
	})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(int, textproto.MIMEHeader) error { return nil }})
	_, err := s.RoundTrip(s.request(ctx, "GET", chart, nil))
	if err == nil || !strings.Contains(err.Error(), "hints without end") {
		t.Errorf("got %v", err)
	}
	<-ended
	s.Counted(t, 0, 1) // it was sent, though not to the stand-in
}

// body records whether it was closed.
type body struct {
	*strings.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

// TestWithoutKey: a request that cannot be sent is not charged, and its body is closed.
func TestWithoutKey(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(100))
	missing := errors.New("no such file")
	s.Key = func() (string, error) { return "", missing }
	content := &body{Reader: strings.NewReader("{}")}
	r := s.request(t.Context(), "POST", rate, content)
	_, err := s.RoundTrip(r)
	refused(t, err, missing)
	if !content.closed {
		t.Error("the body is open")
	}
	s.Key = func() (string, error) { return "bad\nkey" + canary, nil }
	if _, _, err := s.get(t, chart); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("got %v", err)
	}
	s.Counted(t, 0, 0)
}
