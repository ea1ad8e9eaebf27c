package daemon

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turns lets a few runs go at once. When several wait, the one whose region is stalest goes first.
// While they are shut, only probes get one, and the region that was served last goes first: one
// that always fails is the stalest, and would say nothing of the others.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting []*turn // the stalest first
	closed  int     // by so many outages
	probes  int     // that may go all the same
}

type turn struct {
	stale time.Time // of its region's last complete chart
	given chan struct{}
}

// join takes a turn, or a place in the queue.
func (t *turns) join(stale time.Time) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := &turn{stale, make(chan struct{})}
	at, _ := slices.BinarySearchFunc(t.waiting, mine, func(a, b *turn) int {
		if a.stale.After(b.stale) {
			return 1
		}
		return -1 // who came earlier, of those that are equally stale
	})
	t.waiting = slices.Insert(t.waiting, at, mine)
	t.hand()
	return mine
}

// await waits until the turn has come; it is false when ctx ends first, and then the place is given
// up.
func (t *turns) await(ctx context.Context, mine *turn) bool {
	select {
	case <-mine.given:
		return true
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.waiting, mine)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // it was given in this very moment
		t.give()
	}
	return false
}

func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	t.hand()
}

// shut keeps all from their turns but probes, until open has been called as often.
func (t *turns) shut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed++
}

func (t *turns) open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed--; t.closed == 0 {
		t.probes = 0
	}
	t.hand()
}

// probe lets one go although they are shut.
func (t *turns) probe() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.probes = 1
	t.hand()
}

func (t *turns) hand() {
	for t.free > 0 && len(t.waiting) > 0 && (t.closed == 0 || t.probes > 0) {
		next := 0
		if t.closed > 0 {
			next = len(t.waiting) - 1
			t.probes--
		}
		t.free--
		close(t.waiting[next].given)
		t.waiting = slices.Delete(t.waiting, next, next+1)
	}
}
