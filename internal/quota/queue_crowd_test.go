package quota

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// sum is an operation of the crowd, and its answer.
type sum struct{ units, answer int64 }

// TestCrowd: each answered caller gets its own answer, no more than one or two workers run at a
// time, and operations that left before they were taken are not counted.
func TestCrowd(t *testing.T) {
	t.Run("one", func(t *testing.T) { crowd(t, false) })
	t.Run("two", func(t *testing.T) { crowd(t, true) })
}

func crowd(t *testing.T, two bool) {
	t.Parallel()
	q, largest := Queue[sum]{Two: two}, int64(1)
	if two {
		largest = 2
	}
	var total, workers, counted atomic.Int64
	add := func(_ context.Context, group []*Queued[sum]) {
		for _, o := range group {
			o.Work.answer = total.Add(o.Work.units)
			counted.Add(o.Work.units)
		}
	}
	work := func() {
		if n := workers.Add(1); n > largest {
			t.Errorf("%d workers", n)
		}
		q.Send(7, add)
		workers.Add(-1)
	}
	var all sync.WaitGroup
	var succeeded, lost atomic.Int64
	var answers sync.Map
	for caller := range 40 {
		all.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				if rand.IntN(4) == 0 {
					go cancel()
				}
				o := &Queued[sum]{Work: sum{units: int64(1 + caller)}}
				err := q.Ask(ctx, o, caller%2 == 0, work)
				cancel()
				if err != nil {
					lost.Add(o.Work.units)
					continue
				}
				succeeded.Add(o.Work.units)
				if _, twice := answers.LoadOrStore(o.Work.answer, caller); twice {
					t.Error("two have the same answer")
				}
			}
		})
	}
	all.Wait()
	q.Close()
	if n := counted.Load(); n < succeeded.Load() || n > succeeded.Load()+lost.Load() {
		t.Errorf("counted %d, answered %d, and %d may have left", n, succeeded.Load(), lost.Load())
	}
}
