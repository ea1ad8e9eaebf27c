package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// desk is a queue whose first worker waits for the test with the first operation, so that others
// queue up.
type desk struct {
	*testing.T
	Queue[string]
	proceed chan struct{}
	batches []string // taken by the other workers, in order
	again   int      // number of operations that the next worker takes and puts back
}

// atDesk runs a test while the first worker of a desk waits.
func atDesk(t *testing.T, test func(d *desk)) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{T: t, proceed: make(chan struct{})}
		first := &Queued[string]{Work: "first"}
		go d.Ask(t.Context(), first, true, func() { d.work(first) })
		synctest.Wait()
		test(d)
		close(d.proceed)
		synctest.Wait()
		d.Close()
	})
}

// work takes the queued operations and answers them, or puts them back.
func (d *desk) work(first *Queued[string]) {
	if d.First() == first {
		batch := d.Take(1)
		<-d.proceed
		d.Answer(batch)
		return
	}
	most := 10
	if d.again > 0 {
		most = d.again
	}
	batch := d.Take(most)
	d.batches = append(d.batches, fmt.Sprint(names(batch)))
	if d.again > 0 {
		d.again = 0
		d.Answer(nil, batch...)
		return
	}
	d.Answer(batch)
}

func names(batch []*Queued[string]) (all []string) {
	for _, o := range batch {
		all = append(all, o.Work)
	}
	return all
}

// ask queues an operation, and waits until it is queued. The channel receives Ask's result.
func (d *desk) ask(ctx context.Context, name string, wait bool) <-chan error {
	result := make(chan error, 1)
	go func() {
		result <- d.Ask(ctx, &Queued[string]{Work: name}, wait, func() { d.Error("a second worker") })
	}()
	synctest.Wait()
	return result
}

// have lets the first worker proceed, and checks in which batches the others are taken.
func (d *desk) have(batches ...string) {
	d.Helper()
	d.proceed <- struct{}{}
	synctest.Wait()
	if !slices.Equal(d.batches, batches) {
		d.Errorf("taken together: %q, want %q", d.batches, batches)
	}
	if waiting, _ := d.State(); waiting != 0 || d.workers != 0 || d.taken != 0 {
		d.Errorf("%d wait, %d workers, %d taken", waiting, d.workers, d.taken)
	}
}

func TestTakenInTheOrderOfAsking(t *testing.T) {
	atDesk(t, func(d *desk) {
		for i := range 12 {
			d.ask(d.Context(), fmt.Sprint(i), false)
		}
		d.have("[0 1 2 3 4 5 6 7 8 9]", "[10 11]")
	})
}

// TestAgain: operations put back are at the front of the queue.
func TestAgain(t *testing.T) {
	atDesk(t, func(d *desk) {
		for i := range 3 {
			d.ask(d.Context(), fmt.Sprint(i), true)
		}
		d.again = 2
		d.have("[0 1]", "[0 1 2]")
	})
}

func TestLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		taken, wait bool
		want        error
	}{
		"before it was taken":                            {false, false, context.Canceled},
		"before it was taken, though it would wait":      {false, true, context.Canceled},
		"after it was taken":                             {true, false, context.Canceled},
		"after it was taken, and waits for its own good": {true, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(d *desk) {
				ctx, cancel := context.WithCancel(d.Context())
				var batch []*Queued[string]
				result := d.ask(ctx, "own", c.wait)
				d.ask(d.Context(), "other", false)
				if c.taken { // by a worker, which is the test here
					batch = d.Take(1)
				}
				cancel()
				synctest.Wait()
				if left := len(result) == 1; left != (c.want != nil) {
					d.Errorf("left: %v", left)
				}
				d.Answer(batch)
				if err := <-result; !errors.Is(err, c.want) {
					d.Errorf("got %v", err)
				}
				d.have("[other]")
			})
		})
	}
}

// TestAllLeave: a worker that finds an empty queue ends, and the next operation starts another.
func TestAllLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue[string]
		proceed := make(chan struct{})
		work := func() {
			<-proceed
			q.Send(10, func(context.Context, []*Queued[string]) {})
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		result := make(chan error, 2)
		go func() { result <- q.Ask(ctx, &Queued[string]{}, true, work) }()
		synctest.Wait()
		cancel()
		synctest.Wait() // until the operation has left
		close(proceed)
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if err := q.Ask(t.Context(), &Queued[string]{}, true, work); err != nil {
			t.Error(err)
		}
		q.Close()
	})
}

// TestSend: a lone operation is sent in its caller's context, and others in one without an end.
func TestSend(t *testing.T) {
	for _, n := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			var q Queue[string]
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			proceed := make(chan struct{})
			for range n {
				go q.Ask(ctx, &Queued[string]{}, true, func() {
					<-proceed
					q.Send(10, func(ctx context.Context, batch []*Queued[string]) {
						cancel()
						if ended := ctx.Err() != nil; ended != (n == 1) || len(batch) != n {
							t.Errorf("%d of %d sent, ended %v", len(batch), n, ended)
						}
					})
				})
			}
			synctest.Wait()
			close(proceed)
			synctest.Wait()
			q.Close()
		})
	}
}

// TestTwoWorkers: a second worker starts once eight operations wait and as many as the first has
// taken, and a finished worker begins again if as many wait.
func TestTwoWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := Queues[string, string]{}
		q := all.Get("a")
		underWay := make(map[string]chan struct{})
		var taken []string
		send := func(_ context.Context, batch []*Queued[string]) {
			name := batch[0].Work + "-" + batch[len(batch)-1].Work
			taken, underWay[name] = append(taken, name), make(chan struct{})
			<-underWay[name]
		}
		asked := 0
		ask := func(n int) {
			for range n {
				o := &Queued[string]{Work: fmt.Sprint(asked)}
				asked++
				go q.Ask(t.Context(), o, false, func() { q.Send(12, send) })
				synctest.Wait()
			}
		}
		have := func(want ...string) {
			t.Helper()
			if !slices.Equal(taken, want) {
				t.Fatalf("taken together: %q, want %q", taken, want)
			}
		}
		end := func(name string) {
			close(underWay[name])
			synctest.Wait()
		}
		ask(8)
		have("0-0")
		ask(1)
		have("0-0", "1-8")
		ask(10)
		have("0-0", "1-8") // there is no third worker
		end("0-0")
		have("0-0", "1-8", "9-18")
		ask(9)
		end("1-8")
		have("0-0", "1-8", "9-18") // nine wait, which is fewer
		ask(1)
		have("0-0", "1-8", "9-18", "19-28")
		end("19-28")
		ask(1)
		end("9-18")
		have("0-0", "1-8", "9-18", "19-28", "29-29")
		end("29-29")
		q.Close()
	})
}

// TestClose: Close refuses new operations, and waits for the current ones.
func TestClose(t *testing.T) {
	atDesk(t, func(d *desk) {
		result, closed := d.ask(d.Context(), "waits", false), make(chan struct{})
		go func() {
			d.Close()
			close(closed)
		}()
		synctest.Wait()
		if err := <-d.ask(d.Context(), "late", false); !errors.Is(err, ErrQueueClosed) {
			d.Errorf("the later caller got %v", err)
		}
		if len(result) > 0 {
			d.Error("answered before the worker proceeds")
		}
		select {
		case <-closed:
			d.Error("closed while an operation waits")
		default:
		}
		d.have("[waits]")
		<-closed
		if err := <-result; err != nil {
			d.Errorf("the waiting caller got %v", err)
		}
	})
}
