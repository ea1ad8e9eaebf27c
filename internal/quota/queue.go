package quota

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
)

// ErrQueueClosed is returned by a closed queue.
var ErrQueueClosed = errors.New("closed")

// Queued is one caller's operation.
type Queued[W any] struct {
	Work W // the request and its result; owned by the worker while the operation is taken

	ctx  context.Context
	done chan struct{}
}

// Context returns the caller's context.
func (o *Queued[W]) Context() context.Context { return o.ctx }

// Queue batches concurrent calls of a store. It holds the operations that no worker has taken yet.
// One or two workers, goroutines that run while operations are queued, do the work of all callers.
// The zero Queue is empty.
type Queue[W any] struct {
	// Two allows a second worker once at least eight operations wait, and at least as many as the
	// first worker has taken. Batches stay large, and one is in progress while the callers of the
	// other queue again.
	Two bool

	mu      sync.Mutex
	waiting []*Queued[W]
	workers int
	taken   int  // operations in progress
	closed  bool // refuses new operations
	ended   sync.WaitGroup
}

// Ask queues o and returns once it is answered. Workers call work, which takes operations and
// answers them. If ctx ends before o is taken, o leaves the queue. If ctx ends later, Ask still
// waits for the answer if wait is true. Without an answer, Ask returns ctx's error.
func (q *Queue[W]) Ask(ctx context.Context, o *Queued[W], wait bool, work func()) error {
	o.ctx, o.done = ctx, make(chan struct{})
	if !q.join(o, work) {
		return ErrQueueClosed
	}
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
	}
	if q.leave(o) {
		return ctx.Err()
	}
	if !wait {
		select {
		case <-o.done: // a late answer still counts
		default:
			return ctx.Err()
		}
	}
	<-o.done
	return nil
}

// join puts o at the end of the queue, and starts a worker if needed.
func (q *Queue[W]) join(o *Queued[W], work func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.waiting = append(q.waiting, o)
	if q.due() {
		q.ended.Go(func() {
			for more := true; more; more = q.next() {
				runtime.Gosched() // let callers that are about to ask join the batch
				work()
			}
		})
	}
	return true
}

// due reports whether there should be another worker, and counts it. The caller holds mu.
func (q *Queue[W]) due() bool {
	const second = 8 // smaller batches would cost more time than they save
	if len(q.waiting) == 0 || q.workers > 0 &&
		(!q.Two || q.workers == 2 || len(q.waiting) < max(second, q.taken)) {
		return false
	}
	q.workers++
	return true
}

// next reports whether a worker that has finished should begin again.
func (q *Queue[W]) next() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.workers--
	return q.due()
}

// leave removes o from the queue, unless it was taken.
func (q *Queue[W]) leave(o *Queued[W]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, o)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// First returns the first operation in the queue without taking it, or nil if none waits.
func (q *Queue[W]) First() *Queued[W] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil
	}
	return q.waiting[0]
}

// Take takes up to max operations from the front of the queue.
func (q *Queue[W]) Take(max int) []*Queued[W] {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(max, len(q.waiting))
	batch := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	q.taken += n
	return batch
}

// Send takes operations and passes them to send. The context is the caller's for a single
// operation. For several it never ends, because each caller may leave.
func (q *Queue[W]) Send(max int, send func(context.Context, []*Queued[W])) {
	batch := q.Take(max)
	if len(batch) == 0 { // all callers have left
		return
	}
	ctx := batch[0].ctx
	if len(batch) > 1 {
		ctx = context.WithoutCancel(ctx)
	}
	send(ctx, batch)
	q.Answer(batch)
}

// Answer answers the operations done, and returns those in again to the front of the queue.
func (q *Queue[W]) Answer(done []*Queued[W], again ...*Queued[W]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.Insert(q.waiting, 0, again...)
	q.taken -= len(again) + len(done)
	for _, o := range done {
		close(o.done)
	}
}

// Close refuses new operations, and waits until the queue is empty and no worker runs.
func (q *Queue[W]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.ended.Wait()
}

// State returns the number of waiting operations, and whether the queue is closed.
func (q *Queue[W]) State() (waiting int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), q.closed
}

// Queues has a queue per key. Queues are never removed, so there must be few keys. The zero value
// is empty.
type Queues[K comparable, W any] struct {
	// One allows one worker at a time in each queue, instead of two: see Queue.Two.
	One bool

	mu  sync.Mutex
	all map[K]*Queue[W]
}

// Get returns the queue of a key. It creates the queue if necessary.
func (q *Queues[K, W]) Get(key K) *Queue[W] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil {
		q.all = make(map[K]*Queue[W])
	}
	if q.all[key] == nil {
		q.all[key] = &Queue[W]{Two: !q.One}
	}
	return q.all[key]
}
