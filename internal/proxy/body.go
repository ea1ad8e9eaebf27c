package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/meter"
)

// maxCall is the maximum size in bytes of a body that is not an upload.
const maxCall = 1 << 20

// body reads the caller's request body, unless the caller pauses for too long.
type body struct {
	io.ReadCloser
	x *exchange

	// atomic, because the transport may still read when the handler ends
	ended  atomic.Bool
	failed atomic.Pointer[refusal] // set when the caller breaks a bound

	mu       sync.Mutex
	released bool // the deadline of the connection is final
}

// setDeadline sets the deadline for the caller's next bytes, unless an earlier one is final.
func (b *body) setDeadline(at time.Time, final bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.released {
		b.released = final
		b.x.w.control.SetReadDeadline(at)
	}
}

// Read reads from the caller, and limits its pauses.
func (b *body) Read(p []byte) (int, error) {
	pause := b.x.proxy.Limits.Pause
	b.setDeadline(time.Now().Add(pause), false)
	n, err := b.ReadCloser.Read(p)
	// without this, the server would mistake the expired deadline for a disconnect
	b.setDeadline(time.Time{}, false)
	b.x.moved()
	large, isLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == io.EOF:
		b.ended.Store(true)
	case isLarge:
		return n, b.fail(tooLarge(large.Limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, b.fail(refusef(http.StatusRequestTimeout, "bodyTooSlow", "request stopped",
			"no byte of the request body arrived for %s", pause))
	case err != nil:
		return n, b.fail(refusef(http.StatusBadRequest, "bodyBroken", "request broke off",
			"the body of the request broke off: %v", err))
	}
	return n, err
}

// freeBody is the number of bytes of each body that do not count against Limits.Bodies.
const freeBody = 64 << 10

// keeper counts the bytes of a body in memory and refuses bytes beyond Limits.Bodies.
type keeper struct {
	proxy *Proxy
	bytes int64
}

func (k *keeper) counted() int64 { return max(0, k.bytes-freeBody) }

// Write counts the bytes.
func (k *keeper) Write(p []byte) (int, error) {
	before := k.counted()
	k.bytes += int64(len(p))
	maxBytes := k.proxy.Limits.Bodies
	if k.proxy.bodyBytes.Add(k.counted()-before) > maxBytes && k.counted() > before {
		k.release() // at once, or two bodies with room for only one would refuse each other
		return 0, tooMany("the bodies of the requests under way have %d MiB, the maximum "+
			"(--max-bodies)", maxBytes>>20)
	}
	return len(p), nil
}

// release stops counting the bytes.
func (k *keeper) release() {
	k.proxy.bodyBytes.Add(-k.counted())
	k.bytes = 0
}

func (b *body) fail(f *refusal) error {
	b.failed.Store(f)
	return f
}

func tooLarge(maxBytes int64) *refusal {
	return refusef(http.StatusRequestEntityTooLarge, "bodyTooLarge", "request is too large",
		"the body of the request is larger than %d bytes; uploads go to the /upload path of "+
			"their method, and --max-upload bounds them", maxBytes)
}

// linger is how long a caller may keep sending after the response.
const linger = 5 * time.Second

// stopReading limits the time for which the server reads the rest of the request's body. Without
// it, a slow caller could delay the response until the whole body has arrived.
func (x *exchange) stopReading() {
	// ended is set with the last byte, because the server returns io.EOF with it
	if x.length == 0 || x.body != nil && x.body.ended.Load() {
		return
	}
	x.cut = true
	x.w.Header().Set("Connection", "close")
	if end := time.Now().Add(linger); x.body != nil {
		x.body.setDeadline(end, true)
	} else {
		x.w.control.SetReadDeadline(end)
	}
}

// drain gives a caller some time to finish sending. Most callers read the response only then, and
// lose it if the connection is closed before.
func (x *exchange) drain() {
	// a client with Expect sends nothing before 100 Continue
	if !x.cut || x.body == nil && x.r.Header.Get("Expect") != "" {
		return
	}
	x.w.control.Flush()
	io.Copy(io.Discard, x.incoming)
}

// bodied lists the verbs of requests with a body.
var bodied = []string{http.MethodPost, http.MethodPut, http.MethodPatch}

// receive waits for the first byte of an upload's body, or for all of any other body, so that a
// request that never arrives is not charged.
func (x *exchange) receive() error {
	r := x.r
	overridden := r.Header.Get(costs.Override) != ""
	if r.ContentLength == 0 {
		return nil
	}
	if !slices.Contains(bodied, r.Method) {
		return ambiguous("%s takes no body", r.Method)
	}
	upload := x.method.Upload && r.URL.Path != x.method.Path || x.method.File()
	form := strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), formType)
	maxBytes := int64(maxCall)
	if !x.method.Known() {
		maxBytes = meter.MaxBody
	}
	if upload {
		maxBytes = x.proxy.Limits.Upload
	} else if form && !overridden && !x.method.Form {
		return ambiguous("its body is a form: send JSON, with Content-Type: application/json")
	}
	x.body = &body{ReadCloser: http.MaxBytesReader(x.w.ResponseWriter, r.Body, maxBytes), x: x}
	if r.ContentLength > maxBytes {
		return tooLarge(maxBytes)
	}
	if upload {
		return x.receiveFirst()
	}
	return x.receiveAll(overridden)
}

func (x *exchange) receiveFirst() error {
	first := make([]byte, 1)
	n, err := io.ReadFull(x.body, first)
	if err != nil && err != io.EOF {
		return err
	}
	x.r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first[:n]), x.body), x.body}
	return nil
}

func (x *exchange) receiveAll(overridden bool) error {
	all, err := io.ReadAll(io.TeeReader(x.body, &x.keeps))
	if err != nil {
		return err
	}
	if overridden {
		form, err := x.up.checkOverride(x.r, string(all))
		if err != nil {
			return err
		}
		all = []byte(form)
	}
	x.r.Body, x.r.ContentLength, x.r.TransferEncoding = io.NopCloser(bytes.NewReader(all)),
		int64(len(all)), nil
	x.r.Header.Del("Content-Length") // the body may be shorter now
	return nil
}
