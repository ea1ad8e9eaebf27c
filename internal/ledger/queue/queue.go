// Package queue has concurrent callers work together: one of them at a time, or two, does what all
// have queued.
package queue

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
)

// ErrClosed says that a queue takes nothing any more.
var ErrClosed = errors.New("closed")

// Op is one caller's operation. One that was answered can be asked again.
type Op[W any] struct {
	Work  W    // what to do, and how it went; the leader's while the operation is taken
	Alone bool // comes next, and is taken with no other

	state state         // guarded by the queue
	wake  chan struct{} // receives when the operation is answered, or is to lead
}

type state int

const (
	waiting state = iota // in the queue; the caller may still leave
	leader               // in the queue, and it is this caller's turn to lead
	begun                // taken by the leader; the caller waits for the answer
	answered
)

// Queue holds the operations that nobody has taken yet. A caller that leads takes what is queued,
// finishes that, and passes the lead on to the first one still waiting. So no goroutine runs in the
// background, and a lone caller waits for nobody. The zero Queue is empty.
type Queue[W any] struct {
	// Two lets two lead at a time, the second once eight wait, and as many as the first has taken.
	// So groups stay large, and one is under way while the callers of the other ask again.
	Two bool

	mu      sync.Mutex
	waiting []*Op[W]
	leaders int        // how many lead
	turn    *Op[W]     // of the leader that has taken nothing yet
	taken   int        // operations that are under way
	closed  bool       // nothing joins any more
	idle    *sync.Cond // on mu; signalled when nobody leads any more
}

// Ask queues o and returns when it is answered. When the caller is to lead, lead is called; it must
// take operations and finish them, perhaps later. If ctx ends before o was taken, o leaves the
// queue; after that, wait says whether to wait for the answer nevertheless. In both cases Ask
// returns ctx's error if there is no answer.
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
			if q.leave(o) || !wait && len(o.wake) == 0 { // an answer counts, however late
				return ctx.Err()
			}
			<-o.wake
		}
		if leads = o.state == leader; !leads {
			return nil
		}
	}
}

// join puts o at the end, or next if it is to go alone; leads reports whether its caller is to lead
// at once.
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

// due reports whether one more is to lead. mu is held.
func (q *Queue[W]) due() bool {
	if q.turn != nil || len(q.waiting) == 0 {
		return false
	}
	const second = 8 // smaller groups would cost more time than they win
	return q.leaders == 0 || q.Two && q.leaders == 1 && len(q.waiting) >= max(second, q.taken)
}

func (q *Queue[W]) leads(o *Op[W]) {
	q.leaders++
	q.turn, o.state = o, leader
}

// leave takes o out of the queue, unless it has begun. A leader that leaves passes the lead on.
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

// Lead sends what is queued: o, the caller's own, if it is the only one, and a group in the
// background, since each caller may leave. The groups that queue up meanwhile are sent there, too.
// It is for who leads.
func (q *Queue[W]) Lead(ctx context.Context, o *Op[W], most int,
	send func(context.Context, []*Op[W])) {
	runtime.Gosched() // who is about to ask joins the group
	group := q.Take(most)
	if len(group) == 1 && group[0] == o {
		send(ctx, group)
		q.Finish(nil, group)
		return
	}
	go func() {
		makeRoom(new([8 << 10]byte))
		for ctx := context.WithoutCancel(ctx); len(group) > 0; {
			send(ctx, group)
			runtime.Gosched()
			group = q.Next(group, most)
		}
	}()
}

// makeRoom has the stack of a new goroutine grow at once, and not in steps while a client's many
// calls are on it, each of which would copy them.
//
//go:noinline
func makeRoom(*[8 << 10]byte) {}

// Take takes the first operations, at most so many, and of one that goes alone no other. It is for
// who leads.
func (q *Queue[W]) Take(most int) []*Op[W] {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.take(most)
}

// Next answers the operations that are done, and takes the next ones as Take does, so that a leader
// keeps the lead while enough others wait; when they do not, it ends.
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

// Finish ends a leader's turn: again goes back to the front of the queue, done is answered.
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

// passOn ends a leader's turn, and names the next one if that is due. mu is held.
func (q *Queue[W]) passOn() {
	q.leaders--
	if q.due() {
		q.leads(q.waiting[0])
		q.waiting[0].wake <- struct{}{}
	} else if q.leaders == 0 && q.idle != nil {
		q.idle.Broadcast()
	}
}

// Close turns away newcomers and waits until the queue is empty and nobody leads.
func (q *Queue[W]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.idle = sync.NewCond(&q.mu)
	for q.leaders > 0 {
		q.idle.Wait()
	}
}

// State is how many operations wait, and whether the queue is closed.
func (q *Queue[W]) State() (waiting int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), q.closed
}

// Queues are queues by key, in which two may lead. They stay, so there must not be many. The zero
// value has none.
type Queues[K comparable, W any] struct {
	mu sync.Mutex
	of map[K]*Queue[W]
}

// Get is the queue of a key, from now on.
func (q *Queues[K, W]) Get(key K) *Queue[W] {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.of[key]
	if of == nil {
		if q.of == nil {
			q.of = make(map[K]*Queue[W])
		}
		of = &Queue[W]{Two: true}
		q.of[key] = of
	}
	return of
}
