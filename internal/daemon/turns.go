package daemon

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turns lets a few runs go at once. When several wait, the one whose region is stalest goes first.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting []*turn
}

// turn is one who waits.
type turn struct {
	stale time.Time // of its region's last complete chart
	given chan struct{}
}

// join takes a turn, or a place in the queue.
func (t *turns) join(stale time.Time) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := &turn{stale, make(chan struct{})}
	if t.free > 0 {
		t.free--
		close(mine.given)
		return mine
	}
	at, _ := slices.BinarySearchFunc(t.waiting, mine, func(a, b *turn) int {
		if a.stale.After(b.stale) {
			return 1
		}
		return -1 // who came earlier, of those that are equally stale
	})
	t.waiting = slices.Insert(t.waiting, at, mine)
	return mine
}

// await waits until the turn has come; it is false when ctx ends first, and then the place is given up.
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

// give passes the turn on.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	close(t.waiting[0].given)
	t.waiting = slices.Delete(t.waiting, 0, 1)
}
