// Package queue batches concurrent calls: one caller at a time, or two, does the work of all that
// are queued.
package queue

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
)

// ErrClosed is returned by a closed queue.
var ErrClosed = errors.New("closed")

// Op is one caller's operation. An answered Op can be used again.
type Op[W any] struct {
	Work  W    // the request and its result; owned by the leader while the operation is taken
	Alone bool // comes next, and is taken alone

	state state         // guarded by the queue
	wake  chan struct{} // receives when the operation is answered, or its caller must lead
}

type state int

const (
	waiting state = iota // in the queue; the caller may still leave
	leader               // in the queue, and its caller must lead
	begun                // taken by the leader; the caller waits for the answer
	answered
)

// Queue holds operations that no leader has taken yet. A leading caller takes the queued
// operations, finishes them, and passes the lead to the first one still waiting. So there is no
// background goroutine, and a lone caller does not wait. The zero Queue is empty.
type Queue[W any] struct {
	// Two allows two leaders at a time, the second once eight operations wait and as many as the
	// first has taken. Groups stay large, and one is in progress while the callers of the other
	// queue again.
	Two bool

	mu      sync.Mutex
	waiting []*Op[W]
	leaders int        // number of leaders
	turn    *Op[W]     // of the leader that has not taken any operations yet
	taken   int        // operations in progress
	closed  bool       // refuses new operations
	idle    *sync.Cond // on mu; signalled when no caller leads any more
}

// Ask queues o and returns when it is answered. If the caller must lead, Ask calls lead, which
// takes operations and finishes them, perhaps later. If ctx ends before o was taken, o leaves the
// queue. If it ends later, Ask waits for the answer if wait is true. Without an answer Ask
// returns ctx's error.
func (q *Queue[W]) Ask(ctx context.Context, o *Op[W], wait bool, lead func()) error {
	leads, err := q.join(o)
	if err != nil {
		return err
	}
	for {
		if leads {
			lead()
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			if q.leave(o) || !wait && len(o.wake) == 0 { // a late answer still counts
				return ctx.Err()
			}
			<-o.wake
		}
		if leads = o.state == leader; !leads {
			return nil
		}
	}
}

// join puts o at the end of the queue, or at the front if it goes alone. leads reports whether
// its caller must lead at once.
func (q *Queue[W]) join(o *Op[W]) (leads bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, ErrClosed
	}
	if o.state = waiting; o.wake == nil {
		o.wake = make(chan struct{}, 1)
	}
	at := len(q.waiting)
	if o.Alone {
		comesFirst := func(w *Op[W]) bool { return w.Alone || w == q.turn }
		for at = 0; at < len(q.waiting) && comesFirst(q.waiting[at]); at++ {
		}
	}
	q.waiting = slices.Insert(q.waiting, at, o)
	if !q.due() {
		return false, nil
	}
	q.leads(o)
	return true, nil
}

// due reports whether there should be another leader. The caller holds mu.
func (q *Queue[W]) due() bool {
	if q.turn != nil || len(q.waiting) == 0 {
		return false
	}
	const second = 8 // smaller groups would cost more time than they save
	return q.leaders == 0 || q.Two && q.leaders == 1 && len(q.waiting) >= max(second, q.taken)
}

func (q *Queue[W]) leads(o *Op[W]) {
	q.leaders++
	q.turn, o.state = o, leader
}

// leave removes o from the queue, unless it was taken. A leaving leader passes the lead on.
func (q *Queue[W]) leave(o *Op[W]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, o)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if q.turn == o {
		q.turn = nil
		q.passOn()
	}
	return true
}

// Lead sends the queued operations: o itself, if it is the only one, or else a group in the
// background, because each caller may leave. It sends the groups that queue up meanwhile there
// too. Only the leader may call it.
func (q *Queue[W]) Lead(ctx context.Context, o *Op[W], most int,
	send func(context.Context, []*Op[W])) {
	runtime.Gosched() // callers about to ask join the group
	group := q.Take(most)
	if len(group) == 1 && group[0] == o {
		send(ctx, group)
		q.Finish(nil, group)
		return
	}
	go func() {
		for ctx := context.WithoutCancel(ctx); len(group) > 0; {
			send(ctx, group)
			runtime.Gosched()
			group = q.Next(group, most)
		}
	}()
}

// Take takes the first operations, at most most of them, or a single one that goes alone. Only
// the leader may call it.
func (q *Queue[W]) Take(most int) []*Op[W] {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.take(most)
}

// Next answers the finished operations and takes the next ones like Take, so that a leader
// continues while enough operations wait. Otherwise its turn ends.
func (q *Queue[W]) Next(done []*Op[W], most int) []*Op[W] {
	q.mu.Lock()
	q.taken -= len(done)
	var next []*Op[W]
	q.leaders--
	if q.due() {
		next = q.take(most)
	}
	q.leaders++
	if len(next) == 0 {
		q.passOn()
	}
	q.mu.Unlock()
	for _, o := range done {
		o.answer()
	}
	return next
}

func (q *Queue[W]) take(most int) []*Op[W] {
	n := min(most, len(q.waiting))
	for i := 1; i < n; i++ {
		if q.waiting[i].Alone || q.waiting[0].Alone {
			n = i
		}
	}
	taken := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	for _, o := range taken {
		o.state = begun
	}
	q.turn, q.taken = nil, q.taken+len(taken)
	return taken
}

// Finish ends a leader's turn. It puts again back at the front of the queue, and answers done.
func (q *Queue[W]) Finish(again, done []*Op[W]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range again {
		o.state = waiting
	}
	q.waiting = slices.Insert(q.waiting, 0, again...)
	for _, o := range done {
		o.answer()
	}
	q.taken -= len(again) + len(done)
	q.passOn()
}

// Resign answers a leader that has not taken its own operation, and passes the lead on.
func (q *Queue[W]) Resign(o *Op[W]) {
	q.leave(o)
	o.answer()
}

func (o *Op[W]) answer() {
	o.state = answered
	o.wake <- struct{}{}
}

// passOn ends a leader's turn, and names the next leader if one is due. The caller holds mu.
func (q *Queue[W]) passOn() {
	q.leaders--
	if q.due() {
		q.leads(q.waiting[0])
		q.waiting[0].wake <- struct{}{}
	} else if q.leaders == 0 && q.idle != nil {
		q.idle.Broadcast()
	}
}

// Close refuses new operations, and waits until the queue is empty and no caller leads.
func (q *Queue[W]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.idle = sync.NewCond(&q.mu)
	for q.leaders > 0 {
		q.idle.Wait()
	}
}

// State returns the number of waiting operations, and whether the queue is closed.
func (q *Queue[W]) State() (waiting int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), q.closed
}

// Queues holds a queue per key. Queues are never removed, so keys must be few. The zero value has
// none.
type Queues[K comparable, W any] struct {
	// One allows one leader at a time in each queue, instead of two: see Queue.Two.
	One bool

	mu sync.Mutex
	of map[K]*Queue[W]
}

// Get returns the queue of a key. It creates the queue if necessary.
func (q *Queues[K, W]) Get(key K) *Queue[W] {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.of[key]
	if of == nil {
		if q.of == nil {
			q.of = make(map[K]*Queue[W])
		}
		of = &Queue[W]{Two: !q.One}
		q.of[key] = of
	}
	return of
}
