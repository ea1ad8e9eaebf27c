package daemon

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"quotabudget/internal/share"
)

// lanes are those that run, through one configuration after the other. A lane whose ticks are the
// same under the next one goes on, and takes what else has changed with its next attempt. One whose
// ticks have changed, or that is gone, gets no further tick; its run under way goes on to its end,
// and only then does its successor begin.
type lanes struct {
	*Daemon
	byName   map[string]*running // also those that are gone, while their last run lasts
	forecast *running
	ending   sync.WaitGroup
}

// running is a goroutine of a lane, or of the forecast.
type running struct {
	lane    share.Lane
	cancel  context.CancelFunc
	stopped bool // told to end
	ended   chan struct{}
}

func (r *running) stop() {
	r.stopped = true
	r.cancel()
}

// last is what has not ended yet of r, nil for nothing.
func (r *running) last() *running {
	if r == nil {
		return nil
	}
	select {
	case <-r.ended:
		return nil
	default:
		return r
	}
}

// start runs work, until its context ends, as soon as what was before has ended.
func (s *lanes) start(ctx context.Context, before *running, work func(context.Context)) *running {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{cancel: cancel, ended: make(chan struct{})}
	s.ending.Go(func() {
		defer close(r.ended)
		defer cancel()
		if before != nil {
			<-before.ended
		}
		work(ctx)
	})
	return r
}

// use puts a configuration in force as of a moment.
func (s *lanes) use(ctx context.Context, w *Work, since time.Time) {
	s.now.Store(w)
	s.Metrics.inForce(w, since)
	s.upstream.hasten()
	s.catalogue.hasten()
	catchUp := new(turns) // nobody's until all new lanes have joined, so that the stalest is first
	inForce := make(map[string]bool)
	var changed []*lane
	before := make(map[*lane]*running) // whose end they wait for
	for i, l := range w.Lanes {
		inForce[l.Name()] = true
		r := s.byName[l.Name()]
		if r != nil && !r.stopped && r.lane.SameTicks(l) {
			continue
		}
		next := &lane{
			Daemon: s.Daemon, Lane: l, work: w, index: i, since: since, catchUp: catchUp, recorded: newRecorded(),
		}
		if before[next] = r.last(); before[next] == nil {
			next.begin(ctx)
		}
		changed = append(changed, next)
	}
	for name, r := range s.byName {
		switch {
		case inForce[name]:
		case r.last() == nil:
			delete(s.byName, name)
		default:
			r.stop()
		}
	}
	for _, l := range changed {
		s.replace(ctx, before[l], l)
	}
	catchUp.give()
	if s.forecast != nil {
		s.forecast.stop()
	}
	s.forecast = s.start(ctx, s.forecast, func(ctx context.Context) { s.foretell(ctx, w) })
	s.Log.Info("lanes run", "lanes", len(w.Lanes), "unchanged", len(w.Lanes)-len(changed),
		"holder", s.Holder)
}

// replace starts a lane in the place of one of its name, nil for none.
func (s *lanes) replace(ctx context.Context, before *running, l *lane) {
	if before != nil {
		before.stop()
	}
	r := s.start(ctx, before, func(ticks context.Context) {
		if before != nil && ticks.Err() == nil {
			l.begin(ctx)
		}
		l.run(ticks, ctx)
	})
	r.lane = l.Lane
	s.byName[l.Name()] = r
}

// await waits until all have ended, for the grace period after the end of ctx.
func (s *lanes) await(grace time.Duration) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.ending.Wait()
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("%w of %s", ErrGrace, grace)
	}
}

// index is that of a lane, -1 when there is none of the name.
func (w *Work) index(name string) int {
	return slices.IndexFunc(w.Lanes, func(l share.Lane) bool { return l.Name() == name })
}

// refresh takes over what has changed with the configuration in force. A lane whose ticks have
// changed, or that is gone, ends by the one that it has.
func (l *lane) refresh() {
	w := l.now.Load()
	if w == l.work {
		return
	}
	i := w.index(l.Name())
	if i >= 0 && w.Lanes[i].SameTicks(l.Lane) {
		l.work, l.index, l.Lane = w, i, w.Lanes[i]
	}
}

// forget makes a lane that is in no configuration any more begin as a new one, should it come back.
func (l *lane) forget() {
	if l.now.Load().index(l.Name()) >= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.handled, l.Name())
}
