package proxy

import (
	"context"
	"net/http"
	"time"

	"quotabudget/internal/meter"
)

// Limits are what the proxy gives one caller at most, so that it has enough for the others.
type Limits struct {
	Requests int           // under way at once, whose bodies have come
	Upload   int64         // bytes of an upload's body
	Bodies   int64         // bytes of all other bodies together, of which 64 KiB of each are free
	Pause    time.Duration // how long a caller may send, or take, nothing at all
	// how long nothing at all may move in either direction once the request is on its way; of a call
	// whose price is known only afterwards, whose upstream may think for a while
	Silence, Thinking time.Duration
	// Ending is how long the proxy may take to end: three quarters of it for the requests under way,
	// the rest for reading what is left of their responses. Orchestrators kill after 30 s.
	Ending time.Duration
}

// DefaultLimits suit a program's calls and the uploads of large videos.
func DefaultLimits() Limits {
	return Limits{Requests: 256, Upload: 64 << 30, Bodies: 256 << 20, Pause: 30 * time.Second,
		Silence: 5 * time.Minute, Thinking: 15 * time.Minute, Ending: 20 * time.Second}
}

// takeSlot makes the request one of those under way, if there is room. Its body has come by then,
// so callers that send slowly keep no slot from others.
func (x *exchange) takeSlot() error {
	p := x.proxy
	if int(p.underWay.Add(1)) > p.Limits.Requests {
		p.underWay.Add(-1)
		return refusef(http.StatusServiceUnavailable, "tooManyRequests",
			"too many requests at once",
			"%d requests are under way, as many as the proxy takes at once (--max-requests)",
			p.Limits.Requests).with("Retry-After", "1")
	}
	x.slot = true
	return nil
}

// writer sends the response, as long as the caller does not stop taking it.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	pause   time.Duration
	status  int // that was answered; 200 until then
	moved   func()
	before  func() // the answer begins
}

func newWriter(w http.ResponseWriter, pause time.Duration) *writer {
	control := http.NewResponseController(w)
	control.SetWriteDeadline(time.Time{}) // it may have one from the request before
	return &writer{ResponseWriter: w, control: control, pause: pause, status: http.StatusOK,
		moved: func() {}}
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the status.
func (w *writer) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.status = status
		w.before()
	}
	w.expect()
	w.ResponseWriter.WriteHeader(status)
}

// Write waits for the caller.
func (w *writer) Write(p []byte) (int, error) {
	w.expect()
	n, err := w.ResponseWriter.Write(p)
	w.moved()
	return n, err
}

// expect bounds how long the caller may take for what is sent next.
func (w *writer) expect() { w.control.SetWriteDeadline(time.Now().Add(w.pause)) }

// watch ends the context when nothing has moved for as long as Limits allow: no byte of the request
// read, no byte of the answer written.
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
	x.w.moved = func() { timer.Reset(silence) }
	if x.body != nil {
		x.body.moved = x.w.moved
	}
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// timed observes how long the upstream takes to answer.
type timed struct {
	transport *meter.Transport
	x         *exchange
}

// RoundTrip charges and sends the request.
func (t timed) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := t.transport.RoundTrip(r)
	t.x.proxy.Metrics.answered(t.x, resp, time.Since(began))
	return resp, err
}

// UnderWay is how many requests the proxy is answering.
func (p *Proxy) UnderWay() int { return int(p.underWay.Load()) }
