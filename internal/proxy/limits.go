package proxy

import (
	"context"
	"net/http"
	"time"
)

// Limits are the bounds of the memory, connections and time that callers can use.
type Limits struct {
	Requests int           // concurrent requests whose bodies have arrived
	Upload   int64         // bytes of an upload's body
	Bodies   int64         // total bytes of all other bodies, except 64 KiB of each
	Pause    time.Duration // maximum time without sending or reading by a caller
	// Silence is the maximum time without a byte in either direction once the request is sent.
	// Thinking replaces it for calls of unknown price, because models may respond late.
	Silence, Thinking time.Duration
	// Ending is the maximum time for shutting down: three quarters for the requests under way, and
	// the rest for reading their responses to the end. Orchestrators kill after 30 s.
	Ending time.Duration
}

// DefaultLimits returns limits for a program's calls and uploads of large videos.
func DefaultLimits() Limits {
	return Limits{Requests: 256, Upload: 64 << 30, Bodies: 256 << 20, Pause: 30 * time.Second,
		Silence: 5 * time.Minute, Thinking: 15 * time.Minute, Ending: 20 * time.Second}
}

// takeSlot takes one of the Limits.Requests slots, or refuses the request. The body, or the first
// byte of an upload, has already arrived, so slow callers do not block slots.
func (x *exchange) takeSlot() error {
	p := x.proxy
	if int(p.underWay.Add(1)) > p.Limits.Requests {
		p.underWay.Add(-1)
		return tooMany("%d requests are under way, the maximum (--max-requests)",
			p.Limits.Requests)
	}
	x.slot = true
	return nil
}

func tooMany(format string, args ...any) *refusal {
	return refusef(http.StatusServiceUnavailable, "tooManyRequests", "too many requests at once",
		format, args...).with("Retry-After", "1")
}

// writer sends the response, unless the caller stops reading it.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	x       *exchange
	status  int // of the response; 200 until WriteHeader
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader sends and records the status.
func (w *writer) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.status = status
		w.x.stopReading()
	}
	w.expect()
	w.ResponseWriter.WriteHeader(status)
}

// Write sends the bytes, and limits how long the caller may take.
func (w *writer) Write(p []byte) (int, error) {
	w.expect()
	n, err := w.ResponseWriter.Write(p)
	w.x.moved()
	return n, err
}

// expect sets the deadline for the caller to read the next bytes.
func (w *writer) expect() { w.control.SetWriteDeadline(time.Now().Add(w.x.proxy.Limits.Pause)) }

// watch returns a context that ends when no byte of the request or response has moved for the time
// that Limits allows.
func (x *exchange) watch(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	silence := x.proxy.Limits.Silence
	if !x.method.Known() {
		silence = max(silence, x.proxy.Limits.Thinking)
	}
	timer := time.AfterFunc(silence, func() {
		cancel(refusef(http.StatusGatewayTimeout, "upstreamTimeout",
			"upstream did not answer in time",
			"nothing has moved to or from the upstream for %s", silence))
	})
	x.moved = func() { timer.Reset(silence) }
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// RoundTrip charges and sends the request, and measures how long the upstream takes to respond.
func (x *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := x.up.RoundTrip(r)
	x.proxy.Metrics.countResponse(x, resp, time.Since(began))
	return resp, err
}

// UnderWay returns the number of requests under way.
func (p *Proxy) UnderWay() int { return int(p.underWay.Load()) }
