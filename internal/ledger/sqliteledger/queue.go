package sqliteledger

import (
	"fmt"
	"slices"
	"sync"

	"quotabudget/internal/quota"
)

// operation is one caller's piece of work.
type operation struct {
	do       func(*session) error // decides and writes; run again when its transaction was undone
	keeps    bool                 // takes part in what the session keeps
	err      error                // of do, or of the commit
	panicked any                  // what do panicked with; its own caller panics with it
	wake     chan struct{}        // receives when the operation is answered, or is to lead

	state state // guarded by queue.mu, as err is until wake
}

type state int

const (
	waiting  state = iota // in the queue; the caller may still leave
	leader                // in the queue, and it is this caller's turn to run the next transaction
	begun                 // taken by the leader; the caller waits for the answer
	answered              // err says how it went
)

// run runs do. A panic is kept for the operation's own caller, and breaks the transaction.
func (o *operation) run(s *session) {
	s.broken, s.kept.used = nil, nil
	if s.kept.on = o.keeps; !o.keeps {
		s.forget()
	}
	s.wrote = false
	defer func() {
		if o.panicked = recover(); o.panicked != nil {
			s.broken = fmt.Errorf("panic: %v", o.panicked)
		}
		if s.broken != nil {
			o.err = s.broken
		}
	}()
	if s.broken == nil {
		o.err = o.do(s)
	}
	if o.err == nil && o.keeps {
		s.keep()
	}
}

// queue holds the operations that no transaction has taken yet. One caller at a time leads: it runs
// a transaction with what is queued, its own operation among them, and passes the lead on to the
// first one still waiting. So no goroutine runs in the background, and a lone caller waits for
// nobody.
type queue struct {
	mu      sync.Mutex
	waiting []*operation
	led     bool       // some caller leads
	closed  bool       // nothing joins any more
	idle    *sync.Cond // on mu; signalled when nobody leads any more
}

// join puts o at the end; leads reports whether its caller is to lead at once.
func (q *queue) join(o *operation) (leads bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, fmt.Errorf("%w: closed", quota.ErrUnreachable)
	}
	q.waiting = append(q.waiting, o)
	if q.led {
		return false, nil
	}
	q.led, o.state = true, leader
	return true, nil
}

// leave takes o out of the queue, unless it has begun. A leader that leaves passes the lead on.
func (q *queue) leave(o *operation) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, o)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if o.state == leader {
		q.passOn()
	}
	return true
}

// next takes the first operation, nil when there is none.
func (q *queue) next() *operation {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil
	}
	o := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	o.state = begun
	return o
}

// all takes every operation.
func (q *queue) all() []*operation {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.waiting
	q.waiting = nil
	return taken
}

// finish ends a leader's turn: again goes back to the front of the queue, done is answered.
func (q *queue) finish(again, done []*operation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range again {
		o.state = waiting
	}
	q.waiting = append(again, q.waiting...)
	for _, o := range done {
		o.state = answered
		o.wake <- struct{}{}
	}
	q.passOn()
}

// passOn names the next leader. mu is held.
func (q *queue) passOn() {
	q.led = len(q.waiting) > 0
	if q.led {
		q.waiting[0].state = leader
		q.waiting[0].wake <- struct{}{}
	} else if q.idle != nil {
		q.idle.Broadcast()
	}
}

// close turns away newcomers and waits until the queue is empty and nobody leads.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.idle = sync.NewCond(&q.mu)
	for q.led {
		q.idle.Wait()
	}
}
