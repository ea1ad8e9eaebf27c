package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

const upload = "/upload/youtube/v3/videos?uploadType=media&part=id"

// stall begins a POST with a Content-Length, sends only part of the body, and stops.
func (s *env) stall(t testing.TB, path, sent string, said int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.local)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: video/mp4\r\n"+
		"Content-Length: %d\r\n\r\n%s", path, s.local, said, sent); err != nil {
		t.Error(err)
	}
	return conn
}

// status returns the status of the next response; 0 if there is none.
func status(conn net.Conn) int {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	return resp.StatusCode
}

// TestSlowBodies: callers that never send their whole body are disconnected. They are not charged
// before the last byte, or before the first byte of an upload.
func TestSlowBodies(t *testing.T) {
	s := open(t, uploads(1000), func(s *env) {
		limits := &s.proxy.Limits
		limits.Requests, limits.Pause = 30, 500*time.Millisecond
	})
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			sent, path := "", upload
			if i%2 == 0 {
				sent, path = "{", rate
			}
			if got := status(s.stall(t, path, sent, 10)); got != 408 && got != 503 {
				t.Errorf("%s: %d", path, got)
			}
		})
	}
	wg.Wait()
	s.Counted(t, 0, 0)
	if a := s.do(t, "POST", upload, "film"); a.status != 200 {
		t.Errorf("after them: %d %s", a.status, a.body)
	}
	s.Counted(t, 1, 1)
	if got := status(s.stall(t, upload, "f", 10)); got != 408 {
		t.Errorf("a film that stops: %d", got)
	}
	s.awaitUsed(t, 2) // of which the upstream has seen the beginning
	if !strings.Contains(s.Log.String(), "no byte of the request body arrived for") {
		t.Errorf("log %s", s.Log)
	}
}

// TestStalledBodies: stalled bodies take no slots, and no more memory than Limits.Bodies. Their
// memory is free once their callers disconnect.
func TestStalledBodies(t *testing.T) {
	s := open(t, units(1<<20), func(s *env) {
		s.proxy.Limits.Requests, s.proxy.Limits.Bodies = 1, 128<<10
	})
	var stalled []net.Conn
	send := func(bytes int) int {
		return s.do(t, "POST", rate, strings.Repeat(" ", bytes),
			"Content-Type", "application/json").status
	}
	await(t, func() bool { // one may come while there is no room, and is refused
		stalled = append(stalled, s.stall(t, rate, strings.Repeat(" ", 100<<10), 1<<20))
		return send(100<<10) == 503
	})
	if got, small := s.get(t, categories).status, send(64<<10); got != 200 || small != 200 {
		t.Errorf("beside them: %d, and %d for a small body", got, small)
	}
	for _, conn := range stalled {
		conn.Close()
	}
	await(t, func() bool { return send(100<<10) == 200 })
}

// TestSizes: a body with a Content-Length beyond the bound is refused before it is charged, and any
// other body is cut off at the bound.
func TestSizes(t *testing.T) {
	s := open(t, uploads(1000), func(s *env) { s.proxy.Limits.Upload = 2 << 20 })
	if a := s.do(t, "POST", upload, strings.Repeat("f", 2<<20)); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	s.do(t, "POST", upload, strings.Repeat("f", 2<<20+1)).refused(t, 413)
	large := strings.Repeat(" ", 1<<20+1)
	s.do(t, "POST", rate, large, "Content-Type", "application/json").refused(t, 413)
	s.Counted(t, 1, 1)
	unsized := io.MultiReader(strings.NewReader(large))
	read(t)(http.Post(s.URL+rate, "application/json", unsized)).refused(t, 413)
	s.Counted(t, 1, 1)
	if a := s.get(t, chart, "X-Large", strings.Repeat("x", 100<<10)); a.status != 431 {
		t.Errorf("a large header: %d", a.status)
	}
}

// TestManyAtOnce: requests beyond the bound get 503 with Retry-After, and are not charged.
func TestManyAtOnce(t *testing.T) {
	s := open(t, units(100), func(s *env) { s.proxy.Limits.Requests = 2 })
	hold, held := make(chan struct{}), make(chan struct{}, 2)
	s.Answering(func(w http.ResponseWriter, r *http.Request) {
		held <- struct{}{}
		<-hold
	})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { s.get(t, chart) })
	}
	<-held
	<-held
	a := s.get(t, chart)
	if a.refused(t, 503); a.header.Get("Retry-After") != "1" {
		t.Errorf("%v", a.header)
	}
	close(hold)
	wg.Wait()
	s.awaitUsed(t, 2)
}

// TestSilentUpstream: if the upstream does not respond, the caller gets a 504 that says that the
// request was charged.
func TestSilentUpstream(t *testing.T) {
	s := open(t, units(100), func(s *env) {
		s.Base.(*http.Transport).ResponseHeaderTimeout = 50 * time.Millisecond
		s.Standin.Faults = []string{"hang"}
	})
	p := s.get(t, chart).refused(t, 504)
	if p.Charged["default"] != 1 || !strings.Contains(p.Detail, "was charged") {
		t.Errorf("got %+v", p)
	}
	s.Base.(*http.Transport).ResponseHeaderTimeout = 0
	s.proxy.Limits.Silence = time.Second
	if p := s.get(t, chart).refused(t, 504); p.Charged["default"] != 1 {
		t.Errorf("got %+v", p)
	}
	s.Server.CloseClientConnections()
}

// TestStalledCaller: a caller that does not read its response is disconnected.
func TestStalledCaller(t *testing.T) {
	s := open(t, units(100), func(s *env) {
		s.proxy.Limits.Pause = 100 * time.Millisecond
	})
	s.Answering(func(w http.ResponseWriter, r *http.Request) {
		for chunk := make([]byte, 1<<20); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	conn, err := net.Dial("tcp", s.local)
	must(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", chart, s.local)
	await(t, func() bool { return strings.Contains(s.Log.String(), `outcome="broken off"`) })
}

// TestUpstreamProtocol: an upstream cannot open a tunnel by switching protocols.
func TestUpstreamProtocol(t *testing.T) {
	s := open(t, units(100))
	header := ""
	s.Answering(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n"+header+"\r\n")
			io.Copy(io.Discard, conn)
			conn.Close()
		}
	})
	for _, header = range []string{"", "Connection: Upgrade\r\nUpgrade: websocket\r\n"} {
		s.get(t, chart, "Connection", "Upgrade", "Upgrade", "h2c").refused(t, 502)
	}
}

// TestDeniedUpload: an upload that does not fit is refused before any of it is sent on, and a
// caller that looks for the answer only when it has sent everything reads it.
func TestDeniedUpload(t *testing.T) {
	s := open(t, append(units(10), quota.Limit{Bucket: "video_insert", Units: 0,
		Window: quota.Sliding(time.Hour)}))
	film := strings.Repeat("f", 32<<20)
	if got := status(s.stall(t, upload, film, len(film))); got != 422 {
		t.Errorf("got %d", got)
	}
	s.Counted(t, 0, 0)
}
