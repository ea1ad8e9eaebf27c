package daemon

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turns lets a few runs proceed at once. When several wait, the stalest region goes first. While
// turns are shut, only probes get one, and the most recently served region goes first: a region
// that always fails is the stalest, and its failure would say nothing about the upstream.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting []*turn // stalest first
	closed  int     // outages that keep turns shut
	probes  int     // probes that may still run
}

type turn struct {
	stale   time.Time // time of its region's last complete chart
	granted chan struct{}
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
	case <-mine.granted:
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

// shut withholds all turns but those of probes, until open has been called as many times.
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

// probe lets one lane run although turns are shut.
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
		close(t.waiting[next].granted)
		t.waiting = slices.Delete(t.waiting, next, next+1)
	}
}
