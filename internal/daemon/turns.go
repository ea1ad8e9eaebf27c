package daemon

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turns lets a few runs proceed at once, the stalest region first. Runs for missed ticks go one at
// a time, so that turns remain for the others. While turns are shut, only probes get one, the most
// recently served region first: a region that always fails is the stalest, and its failure would
// not show that the upstream is away.
type turns struct {
	mu       sync.Mutex
	free     int
	catching int     // missed ticks with a turn, plus reasons to delay the others
	waiting  []*turn // stalest first
	closed   int     // outages that keep turns shut
	probes   int     // probes that may still run
}

type turn struct {
	stale   time.Time // time of the region's last complete chart
	catchUp bool      // for a missed tick
	granted chan struct{}
}

// join takes a turn, or a place in the queue.
func (t *turns) join(stale time.Time, catchUp bool) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := &turn{stale, catchUp, make(chan struct{})}
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
		t.give(mine)
	}
	return false
}

func (t *turns) give(back *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	if back.catchUp {
		t.catching--
	}
	t.hand()
}

// delay withholds turns from missed ticks until it has been called with -1 as often as with 1.
func (t *turns) delay(reasons int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.catching += reasons
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
	for t.free > 0 && (t.closed == 0 || t.probes > 0) {
		next := t.next()
		if next < 0 {
			return
		}
		if t.closed > 0 {
			t.probes--
		}
		t.free--
		if t.waiting[next].catchUp {
			t.catching++
		}
		close(t.waiting[next].granted)
		t.waiting = slices.Delete(t.waiting, next, next+1)
	}
}

// next returns the index of the waiting turn to grant next, or -1: the first one that may run, or
// while turns are shut the last one.
func (t *turns) next() int {
	next := -1
	for i, w := range t.waiting {
		if w.catchUp && t.catching > 0 {
			continue
		}
		if next = i; t.closed == 0 {
			break
		}
	}
	return next
}
