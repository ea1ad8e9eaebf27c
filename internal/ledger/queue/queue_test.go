package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// desk is a queue whose first leader holds the lead until the test continues, so that others
// queue up.
type desk struct {
	*testing.T
	Queue[string]
	goOn  chan struct{}
	taken []string // the groups taken, in order
	again int      // number of operations that the next leader takes and puts back
}

// atDesk runs a test while the first leader of a desk is at work, and lets that one finish.
func atDesk(t *testing.T, test func(d *desk)) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{T: t, goOn: make(chan struct{})}
		go func() {
			err := d.Ask(t.Context(), &Op[string]{Work: "first"}, true, func() {
				group := d.Take(1)
				<-d.goOn
				d.Finish(nil, group)
			})
			if err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		test(d)
		close(d.goOn)
		synctest.Wait()
	})
}

// lead takes the queued operations and answers them.
func (d *desk) lead() {
	if n := d.again; n > 0 {
		d.again = 0
		group := d.Take(n)
		d.taken = append(d.taken, fmt.Sprint(names(group))+" again")
		d.Finish(group, nil)
		return
	}
	group := d.Take(10)
	d.taken = append(d.taken, fmt.Sprint(names(group)))
	d.Finish(nil, group)
}

func names(group []*Op[string]) (all []string) {
	for _, o := range group {
		all = append(all, o.Work)
	}
	return all
}

// ask queues an operation, and waits until it is queued. The channel receives Ask's result.
func (d *desk) ask(ctx context.Context, o *Op[string], wait bool) <-chan error {
	succeeded := make(chan error, 1)
	go func() { succeeded <- d.Ask(ctx, o, wait, d.lead) }()
	synctest.Wait()
	return succeeded
}

// have lets the first leader continue, and checks in which groups the others are taken.
func (d *desk) have(groups ...string) {
	d.Helper()
	d.goOn <- struct{}{}
	synctest.Wait()
	if !slices.Equal(d.taken, groups) {
		d.Errorf("taken together: %q, want %q", d.taken, groups)
	}
	if waiting, _ := d.State(); waiting != 0 || d.leaders != 0 {
		d.Errorf("%d wait, %d lead", waiting, d.leaders)
	}
}

func TestTakenInTheOrderOfAsking(t *testing.T) {
	atDesk(t, func(d *desk) {
		for i := range 12 {
			d.ask(d.Context(), &Op[string]{Work: fmt.Sprint(i)}, false)
		}
		d.have("[0 1 2 3 4 5 6 7 8 9]", "[10 11]")
	})
}

// TestAlone: an operation that goes alone comes before waiting ones, after others like it, and is
// taken alone.
func TestAlone(t *testing.T) {
	atDesk(t, func(d *desk) {
		for i := range 5 {
			d.ask(d.Context(), &Op[string]{Work: fmt.Sprint(i), Alone: i == 1 || i == 3}, false)
		}
		d.have("[1]", "[3]", "[0 2 4]")
	})
}

// TestAloneBehindItsLeader: an operation that goes alone comes after a leader that has not taken
// any yet, and not together with it.
func TestAloneBehindItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{T: t}
		goOn := make(chan struct{})
		go d.Ask(t.Context(), &Op[string]{Work: "leader"}, true, func() {
			<-goOn
			d.lead()
		})
		synctest.Wait()
		d.ask(t.Context(), &Op[string]{Work: "other"}, true)
		d.ask(t.Context(), &Op[string]{Work: "alone", Alone: true}, true)
		close(goOn)
		synctest.Wait()
		if want := []string{"[leader]", "[alone]", "[other]"}; !slices.Equal(d.taken, want) {
			t.Errorf("taken together: %q, want %q", d.taken, want)
		}
	})
}

// TestAgain: operations put back are at the front of the queue, and the first of them leads.
func TestAgain(t *testing.T) {
	atDesk(t, func(d *desk) {
		for i := range 3 {
			d.ask(d.Context(), &Op[string]{Work: fmt.Sprint(i)}, true)
		}
		d.again = 2
		d.have("[0 1] again", "[0 1 2]")
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
				own := &Op[string]{Work: "own"}
				var group []*Op[string]
				succeeded := d.ask(ctx, own, c.wait)
				d.ask(d.Context(), &Op[string]{Work: "other"}, false)
				if c.taken { // by the leader, which is the test here
					group = d.Take(1)
				}
				cancel()
				synctest.Wait()
				if left := len(succeeded) == 1; left != (c.want != nil) {
					d.Errorf("left: %v", left)
				}
				for _, o := range group {
					o.answer()
				}
				if err := <-succeeded; !errors.Is(err, c.want) {
					d.Errorf("got %v", err)
				}
				d.have("[other]")
			})
		})
	}
}

// TestLeaderLeaves: if a caller leaves just when it should lead, the next one leads.
func TestLeaderLeaves(t *testing.T) {
	for range 100 {
		atDesk(t, func(d *desk) {
			ctx, cancel := context.WithCancel(d.Context())
			left := d.ask(ctx, &Op[string]{Work: "leaves"}, false)
			stays := d.ask(d.Context(), &Op[string]{Work: "stays"}, false)
			d.mu.Lock()
			d.passOn()
			cancel() // ctx has ended before it can lead
			d.mu.Unlock()
			if err := <-stays; err != nil {
				d.Error(err)
			}
			if err := <-left; err != nil && !errors.Is(err, context.Canceled) {
				d.Error(err)
			}
			synctest.Wait()
			if waiting, _ := d.State(); waiting != 0 || d.leaders != 0 {
				d.Errorf("%d wait, %d lead", waiting, d.leaders)
			}
			d.leaders = 1 // the first leader, which continues
		})
	}
}

// TestResign: a leader that cannot work is answered, and the next one leads.
func TestResign(t *testing.T) {
	atDesk(t, func(d *desk) {
		own := &Op[string]{Work: "resigns"}
		succeeded := make(chan error, 1)
		go func() {
			succeeded <- d.Ask(d.Context(), own, true, func() { d.Resign(own) })
		}()
		synctest.Wait()
		d.ask(d.Context(), &Op[string]{Work: "next"}, true)
		d.have("[next]")
		if err := <-succeeded; err != nil {
			d.Error(err)
		}
	})
}

// TestNext: a leader continues with operations that arrived meanwhile, so their callers do not
// lead.
func TestNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue[string]
		goOn := make(chan struct{})
		var taken []string
		lead := func() {
			go func() {
				for group := q.Take(2); len(group) > 0; group = q.Next(group, 2) {
					taken = append(taken, fmt.Sprint(names(group)))
					<-goOn
				}
			}()
		}
		succeeded := make(chan error)
		for i := range 5 {
			if i > 0 {
				lead = func() { t.Errorf("%d leads", i) }
			}
			go func() { succeeded <- q.Ask(t.Context(), &Op[string]{Work: fmt.Sprint(i)}, false, lead) }()
			synctest.Wait()
		}
		for _, answers := range []int{1, 2, 2} {
			goOn <- struct{}{}
			for range answers {
				if err := <-succeeded; err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
		}
		if want := []string{"[0]", "[1 2]", "[3 4]"}; !slices.Equal(taken, want) || q.leaders != 0 {
			t.Errorf("taken together: %q, %d lead", taken, q.leaders)
		}
		q.Close() // no caller leads
	})
}

// TestTwoLead: a second leader starts once eight operations wait and as many as the first has
// taken, and a finished leader continues if as many wait.
func TestTwoLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Queue[string]{Two: true}
		underWay := make(map[string]chan struct{})
		var taken []string
		send := func(_ context.Context, group []*Op[string]) {
			name := group[0].Work + "-" + group[len(group)-1].Work
			taken, underWay[name] = append(taken, name), make(chan struct{})
			<-underWay[name]
		}
		asked := 0
		ask := func(n int) {
			for range n {
				o := &Op[string]{Work: fmt.Sprint(asked)}
				asked++
				go q.Ask(t.Context(), o, false, func() { q.Lead(t.Context(), o, 12, send) })
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
		have("0-0", "1-8") // there is no third leader
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
		ask(8)
		have("0-0", "1-8", "9-18", "19-28", "29-29", "30-37")
		end("29-29")
		end("30-37")
		q.Close()
	})
}

// TestLeaderOfAnother: a leader behind an operation that goes alone sends that one, and the end
// of its ctx does not stop it.
func TestLeaderOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Queue[string]{Two: true}
		goOn := make(chan struct{})
		ended := make(chan string, 3)
		send := func(ctx context.Context, group []*Op[string]) {
			<-goOn
			ended <- fmt.Sprint(names(group), ctx.Err())
		}
		ctx, cancel := context.WithCancel(t.Context())
		start := make(chan struct{})
		ask := func(ctx context.Context, o *Op[string]) {
			go q.Ask(ctx, o, false, func() {
				<-start
				q.Lead(ctx, o, 10, send)
			})
			synctest.Wait()
		}
		ask(t.Context(), &Op[string]{Work: "first"})
		ask(t.Context(), &Op[string]{Work: "second"})
		close(start)
		synctest.Wait()
		ask(t.Context(), &Op[string]{Work: "alone", Alone: true})
		for range 6 {
			ask(t.Context(), &Op[string]{Work: "waits"})
		}
		ask(ctx, &Op[string]{Work: "leads"})
		cancel()
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		q.Close()
		sent := []string{<-ended, <-ended}
		slices.Sort(sent)
		if want := []string{"[alone] <nil>", "[first second] <nil>"}; !slices.Equal(sent, want) {
			t.Errorf("sent %q, want %q", sent, want)
		}
	})
}

// TestClose: Close refuses new operations, and waits for the current ones.
func TestClose(t *testing.T) {
	atDesk(t, func(d *desk) {
		succeeded := d.ask(d.Context(), &Op[string]{Work: "waits"}, false)
		var closed atomic.Bool
		go func() {
			d.Close()
			closed.Store(true)
		}()
		synctest.Wait()
		late := d.ask(d.Context(), &Op[string]{Work: "late"}, false)
		if err := <-late; !errors.Is(err, ErrClosed) {
			d.Errorf("the later caller got %v", err)
		}
		if closed.Load() || len(succeeded) > 0 {
			d.Error("closed while somebody waits")
		}
		d.have("[waits]")
		if err := <-succeeded; err != nil || !closed.Load() {
			d.Errorf("the waiting caller got %v, closed %v", err, closed.Load())
		}
	})
}
