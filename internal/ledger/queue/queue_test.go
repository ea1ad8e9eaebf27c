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

// desk is a queue whose first leader stays until it is told to go on, so that others queue up.
type desk struct {
	*testing.T
	Queue[string]
	goOn  chan struct{}
	taken []string // who was taken together, in order
	again int      // so many the next leader takes, and puts back
}

// atDesk runs a test at a desk whose first leader is under way, and lets that one finish.
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

// lead takes what is queued, and answers it.
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

// ask queues an operation, and waits until it is there. The channel has what it was told.
func (d *desk) ask(ctx context.Context, o *Op[string], wait bool) <-chan error {
	told := make(chan error, 1)
	go func() { told <- d.Ask(ctx, o, wait, d.lead) }()
	synctest.Wait()
	return told
}

// have goes on with the first leader, and wants the others to be taken so.
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

// One that goes alone comes before those that wait, after others like it, and is taken with nobody.
func TestAlone(t *testing.T) {
	atDesk(t, func(d *desk) {
		for i := range 5 {
			d.ask(d.Context(), &Op[string]{Work: fmt.Sprint(i), Alone: i == 1 || i == 3}, false)
		}
		d.have("[1]", "[3]", "[0 2 4]")
	})
}

// One that goes alone while a leader has taken nothing yet comes after that one, and not with it.
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

// Operations that go back are in front of those that wait, and led by the first of them.
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
				told := d.ask(ctx, own, c.wait)
				d.ask(d.Context(), &Op[string]{Work: "other"}, false)
				if c.taken { // by who leads, who is the test here
					group = d.Take(1)
				}
				cancel()
				synctest.Wait()
				if left := len(told) == 1; left != (c.want != nil) {
					d.Errorf("left: %v", left)
				}
				for _, o := range group {
					o.answer()
				}
				if err := <-told; !errors.Is(err, c.want) {
					d.Errorf("told %v", err)
				}
				d.have("[other]")
			})
		})
	}
}

// A caller that is to lead may leave at the same time: then the next one leads.
func TestLeaderLeaves(t *testing.T) {
	for range 100 {
		atDesk(t, func(d *desk) {
			ctx, cancel := context.WithCancel(d.Context())
			left := d.ask(ctx, &Op[string]{Work: "leaves"}, false)
			stays := d.ask(d.Context(), &Op[string]{Work: "stays"}, false)
			d.mu.Lock()
			d.passOn()
			cancel() // both are known to it before it can do anything
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
			d.leaders = 1 // the first one, who goes on
		})
	}
}

// A leader that cannot work is answered, and the next one leads.
func TestResign(t *testing.T) {
	atDesk(t, func(d *desk) {
		own := &Op[string]{Work: "resigns"}
		told := make(chan error, 1)
		go func() {
			told <- d.Ask(d.Context(), own, true, func() { d.Resign(own) })
		}()
		synctest.Wait()
		d.ask(d.Context(), &Op[string]{Work: "next"}, true)
		d.have("[next]")
		if err := <-told; err != nil {
			d.Error(err)
		}
	})
}

// A leader goes on with those that came meanwhile, whose callers do not lead then.
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
		told := make(chan error)
		for i := range 5 {
			if i > 0 {
				lead = func() { t.Errorf("%d leads", i) }
			}
			go func() { told <- q.Ask(t.Context(), &Op[string]{Work: fmt.Sprint(i)}, false, lead) }()
			synctest.Wait()
		}
		for _, answers := range []int{1, 2, 2} {
			goOn <- struct{}{}
			for range answers {
				if err := <-told; err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
		}
		if want := []string{"[0]", "[1 2]", "[3 4]"}; !slices.Equal(taken, want) || q.leaders != 0 {
			t.Errorf("taken together: %q, %d lead", taken, q.leaders)
		}
		q.Close() // nobody leads
	})
}

// The second of two leaders takes its turn once eight wait, and as many as the first has taken, and
// whoever has finished goes on if as many wait.
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
		have("0-0", "1-8", "9-18") // and nine wait, which are fewer
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

// A leader behind one that goes alone sends that one, and its own context does not end it.
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

// Close turns away who comes later, and waits for who is there.
func TestClose(t *testing.T) {
	atDesk(t, func(d *desk) {
		told := d.ask(d.Context(), &Op[string]{Work: "waits"}, false)
		var closed atomic.Bool
		go func() {
			d.Close()
			closed.Store(true)
		}()
		synctest.Wait()
		late := d.ask(d.Context(), &Op[string]{Work: "late"}, false)
		if err := <-late; !errors.Is(err, ErrClosed) {
			d.Errorf("who came later was told %v", err)
		}
		if closed.Load() || len(told) > 0 {
			d.Error("closed while somebody waits")
		}
		d.have("[waits]")
		if err := <-told; err != nil || !closed.Load() {
			d.Errorf("who waited was told %v, closed %v", err, closed.Load())
		}
	})
}
