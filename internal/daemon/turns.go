package daemon

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turns lets a few runs go at once. When several wait, the stalest region goes first.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting []*turn // stalest first
}

type turn struct {
	stale time.Time // time of its region's last complete chart
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
		return -1 // equally stale: first come, first served
	})
	t.waiting = slices.Insert(t.waiting, at, mine)
	t.hand()
	return mine
}

// await waits for the turn. It gives up the place and returns false if ctx ends first.
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
	if i < 0 { // the turn was given at this moment
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

func (t *turns) hand() {
	for t.free > 0 && len(t.waiting) > 0 {
		t.free--
		close(t.waiting[0].given)
		t.waiting = t.waiting[1:]
	}
}
