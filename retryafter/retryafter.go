// Package retryafter calls an API that limits its clients: it waits as long as the API says, and
// retries.
//
//	client := &http.Client{Transport: &retryafter.Transport{}}
//	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
//	defer cancel()
//	req, err := http.NewRequestWithContext(ctx, "GET", "https://api.example.com/v1/search", nil)
//	…
//	resp, err := client.Do(req) // a denial only if its wait would end after the deadline
package retryafter

import (
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Transport is an http.RoundTripper that retries a denial (429) after its Retry-After. It also
// retries a temporarily unavailable API (503), if the method changes nothing.
//
// It waits within the deadline of the request's context. It returns a denial whose wait would end
// later, and one of a request whose body cannot be read again.
type Transport struct {
	Base http.RoundTripper // http.DefaultTransport if nil
	// MaxWait is the longest single wait of a request without a deadline; one minute if 0.
	MaxWait time.Duration
}

// Callers that were denied together must not return together, so each waits up to a tenth longer,
// or up to leastJitter if that is more.
const (
	leastJitter    = 250 * time.Millisecond
	defaultMaxWait = time.Minute
	maxDrain       = 64 << 10
)

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	for {
		resp, err := base.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		wait, ok := retryAfter(req, resp)
		wait += rand.N(max(wait/10, leastJitter))
		if !ok || !t.inTime(req, wait) {
			return resp, nil
		}
		next, ok := again(req)
		if !ok {
			return resp, nil
		}
		io.CopyN(io.Discard, resp.Body, maxDrain) // allows the connection to be reused
		resp.Body.Close()
		if err := sleep(req, wait); err != nil {
			return nil, err
		}
		req = next
	}
}

// safe lists the methods that change nothing.
var safe = []string{"", http.MethodGet, http.MethodHead, http.MethodOptions}

// retryAfter returns how long the API asks to wait, and whether to retry.
func retryAfter(req *http.Request, resp *http.Response) (time.Duration, bool) {
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
	case resp.StatusCode == http.StatusServiceUnavailable && slices.Contains(safe, req.Method):
	default:
		return 0, false
	}
	text := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	now := time.Now()
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		now = date // by the clock of the API
	}
	return max(0, at.Sub(now)), true
}

func (t *Transport) inTime(req *http.Request, wait time.Duration) bool {
	if deadline, ok := req.Context().Deadline(); ok {
		return time.Until(deadline) > wait
	}
	most := t.MaxWait
	if most == 0 {
		most = defaultMaxWait
	}
	return wait <= most
}

// again returns a copy of the request with its body from the start.
func again(req *http.Request) (*http.Request, bool) {
	next := req.Clone(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return next, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	next.Body = body
	return next, err == nil
}

func sleep(req *http.Request, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-req.Context().Done():
		return req.Context().Err()
	case <-timer.C:
		return nil
	}
}
