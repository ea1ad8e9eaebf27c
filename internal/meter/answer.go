package meter

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// answer is a response body that observes what the caller reads.
type answer struct {
	body     io.ReadCloser
	exchange *exchange

	mu     sync.Mutex // locked while the body is read
	closed atomic.Bool
}

// Read reads the body, or fails once the caller has closed it.
func (a *answer) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	return a.read(p)
}

// read reads and observes the body, and books what the call used when the body ends.
func (a *answer) read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if a.exchange.reached(settled) {
		return n, err
	}
	a.exchange.observe(p[:n])
	switch {
	case err == nil:
		return n, nil
	case err == io.EOF:
		a.exchange.report()
		a.exchange.end(complete)
	case a.exchange.ctx.Err() != nil:
		a.exchange.end(unread)
	default:
		a.exchange.end(broken)
	}
	return n, err
}

// Close ends the caller's reading. The rest is still read if it may report what the call used.
func (a *answer) Close() error {
	if a.closed.Swap(true) {
		return nil
	}
	e := a.exchange
	if e.quote.Known {
		a.mu.Lock()
		defer a.mu.Unlock()
		if !e.reached(settled) {
			e.end(complete) // its headers may report the limits
		}
		return a.body.Close()
	}
	if a.mu.TryLock() { // no Read is in progress
		a.mu.Unlock()
		if e.reached(settled) {
			e.stop()
			return a.body.Close()
		}
	}
	if !e.abandoned(a.drain) {
		e.stop() // ends a Read in progress
		a.drain()
	}
	return nil
}

// drain reads the rest of the body, within the bounds of Drain.
func (a *answer) drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.exchange.stop()
	defer a.body.Close()
	if a.exchange.reached(settled) {
		return
	}
	bound := a.exchange.gate.Drain.orDefault()
	ctx, done := context.WithTimeout(a.exchange.ctx, bound.Time)
	defer done()
	context.AfterFunc(ctx, a.exchange.stop)
	part := make([]byte, 16<<10)
	for left := bound.Bytes; left > 0; {
		n, err := a.read(part[:min(left, int64(len(part)))])
		if left -= int64(n); err != nil {
			return
		}
	}
	a.exchange.end(unread)
}
