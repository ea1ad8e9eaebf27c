package daemon

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"quotabudget/internal/share"
)

// workers are the lanes' goroutines, across configurations. A lane whose ticks stay the same
// continues, and applies other new settings at its next attempt. A lane that is gone or whose ticks
// have changed gets no further tick; its successor begins when its run has finished.
type workers struct {
	d      *Daemon
	byName map[string]*worker // includes lanes that are gone, until their last run ends
	all    sync.WaitGroup
}

type worker struct {
	lane    share.Lane
	cancel  context.CancelFunc
	stopped bool
	ended   chan struct{}
}

func (r *worker) stop() {
	r.stopped = true
	r.cancel()
}

// running returns r, or nil if it has ended.
func (r *worker) running() *worker {
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

// use puts a configuration in force as of a moment.
func (s *workers) use(ctx context.Context, c *Config, since time.Time) {
	s.d.inForce.Store(c)
	s.d.Metrics.inForce(c, since)
	s.d.upstream.hasten()
	s.d.catalogue.hasten()
	catchUp := new(turns) // shut until all new lanes have joined, so that the stalest goes first
	named := make(map[string]bool)
	var changed []*lane
	for _, l := range c.Lanes {
		named[l.Name()] = true
		r := s.byName[l.Name()]
		if r != nil && !r.stopped && r.lane.SameTicks(l.Lane) {
			continue
		}
		next := &lane{Lane: l, d: s.d, cfg: c, since: since, catchUp: catchUp}
		if r.running() == nil {
			next.begin(ctx)
		}
		changed = append(changed, next)
	}
	for name, r := range s.byName {
		if named[name] {
			continue
		}
		if r.stop(); r.running() == nil {
			delete(s.byName, name)
		}
	}
	for _, l := range changed {
		s.replace(ctx, l)
	}
	catchUp.give()
	s.d.Log.Info("lanes run", "lanes", len(c.Lanes), "unchanged", len(c.Lanes)-len(changed),
		"holder", s.d.Holder)
}

// replace starts a lane as soon as the previous one of its name has ended.
func (s *workers) replace(ctx context.Context, l *lane) {
	before := s.byName[l.Name()]
	ticks, cancel := context.WithCancel(ctx)
	r := &worker{lane: l.Lane.Lane, cancel: cancel, ended: make(chan struct{})}
	s.byName[l.Name()] = r
	if before != nil {
		before.stop()
	}
	s.all.Go(func() {
		defer close(r.ended)
		defer cancel()
		if before != nil {
			<-before.ended
		}
		if !l.begun && ticks.Err() == nil {
			l.begin(ctx)
		}
		l.run(ticks, ctx)
	})
}

// await waits until all lanes have ended, for at most the grace period after the end of ctx.
func (s *workers) await(grace time.Duration) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.all.Wait()
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

func (c *Config) find(name string) int {
	return slices.IndexFunc(c.Lanes, func(l Lane) bool { return l.Name() == name })
}

// refresh applies the configuration in force. A lane that is gone or whose ticks have changed
// keeps its own.
func (l *lane) refresh() {
	c := l.d.inForce.Load()
	if i := c.find(l.Name()); i >= 0 && c.Lanes[i].SameTicks(l.Lane.Lane) {
		l.cfg, l.Lane = c, c.Lanes[i]
	}
}

// forget makes a lane that is no longer configured start like a new one if it returns.
func (l *lane) forget() {
	if l.d.inForce.Load().find(l.Name()) >= 0 {
		return
	}
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	delete(l.d.progress, l.Name())
}
