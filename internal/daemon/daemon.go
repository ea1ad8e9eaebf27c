// Package daemon runs the lanes of a schedule, each tick once, for any number of daemons that
// share a ledger.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// Daemon runs every tick of its lanes. Its fields are set before Run.
//
// Daemons share the work by claims in the ledger. One claim is a lease on the lane: its holder runs
// the lane's ticks and keeps renewing it, so a lane never overlaps itself. The other is a mark on
// the tick: first that the tick came, later that it is done. A daemon that finds the lane leased
// tries again until the tick is done or the lease lapses. A chart is stored under the tick's ID, so
// a takeover begins at the first page that is not stored.
//
//	10:00:00  a leases trending/BR and marks trending/BR/2026-06-01T10:00:00Z; b finds it leased
//	10:00:01  a stores pages 1 and 2, and is killed
//	10:02:00  the lease lapses
//	10:02:10  b leases the lane, fetches pages 3 and 4, and marks the tick done
//
// A tick whose chart is cut short by a denial is done too. The lane's next tick resumes that
// chart while it is fresh (ingest.DefaultResume), and owns it from then on.
//
//	10:00:00  trending/BR/2026-06-01T10:00:00Z gets pages 1 and 2, and is denied
//	10:10:00  trending/BR/2026-06-01T10:10:00Z gets pages 3 and 4
//	10:20:00  trending/BR/2026-06-01T10:20:00Z begins a new chart
type Daemon struct {
	Config  *Config                                // the first configuration
	Load    func(context.Context) (*Config, error) // reads the configuration again
	Reload  <-chan struct{}                        // triggers Load; nil for never
	Holder  string                                 // names this daemon in its leases: a quota.NewID
	Log     *slog.Logger
	Metrics *Metrics
	// Missed is called when ticks of a lane did not run; may be nil.
	Missed func(credential string, l share.Lane, ticks int64, last time.Time, why string)

	// State shared by the lanes.
	inForce                     atomic.Pointer[Config]
	turns                       turns
	ledger, catalogue, upstream dependency
	uncharged                   atomic.Bool // a run's charge failed; claims may still work
	breaker                     breaker

	all   sync.WaitGroup // the goroutines of Run
	mu    sync.Mutex     // guards lanes, lane.until and short
	lanes map[string]*lane
	short map[string]time.Time // by credential: the reset of the day that was logged last

	verdicts map[string]*plan.VerdictWatch // by credential
	refused  atomic.Pointer[error]         // set once the upstream refuses the key
	end      context.CancelFunc            // ends Run
}

// MaxRuns is the maximum number of runs at once.
const MaxRuns = 4

// Config is a loaded configuration. Its fields do not change.
type Config struct {
	Lanes []Lane
	// Claims and Spending are the ledger that all the lanes' budgets share.
	Claims   quota.Claims
	Spending Spending
	// Catalog stores how the last ticks of each lane ended; may be nil.
	Catalog *catalog.Catalog
	Lease   time.Duration // at least a second
	Grace   time.Duration // how long Run waits for its runs after its context ends

	ForecastEvery time.Duration // 0 for never
	// Describe completes the question of a credential's forecast: it adds the lanes of other
	// programs, and sets the resets and units of the buckets. May be nil.
	Describe func(ctx context.Context, q *plan.Question) error
}

// ErrGrace is returned by Run if runs are still under way when the grace period is over.
var ErrGrace = errors.New("runs did not end within the grace period")

// Run runs the lanes until ctx ends. It then requests no further pages, stores those in flight,
// releases the leases, and returns nil or ErrGrace. If the upstream refuses the key, Run ends with
// that error, because every further tick would be charged and refused.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, d.end = context.WithCancel(ctx)
	defer d.end()
	d.turns.free = MaxRuns
	d.lanes, d.short = make(map[string]*lane), make(map[string]time.Time)
	d.verdicts = make(map[string]*plan.VerdictWatch)
	d.describe()
	defer d.upstream.stop()
	defer d.catalogue.stop()
	d.use(ctx, d.Config)
	d.all.Go(func() { d.forecast(ctx) })
	d.all.Go(func() { d.askLedger(ctx) })
	for c := d.next(ctx); c != nil; c = d.next(ctx) {
		d.use(ctx, c)
	}
	if err := d.await(d.inForce.Load().Grace); err != nil {
		return err
	}
	if refused := d.refused.Load(); refused != nil {
		return *refused
	}
	return nil
}

// next waits for a valid configuration. It returns nil when ctx ends.
func (d *Daemon) next(ctx context.Context) *Config {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.Reload:
		}
		c, err := d.Load(ctx)
		d.Metrics.reload.done(err)
		if err == nil {
			d.Log.Info("configuration reloaded")
			return c
		}
		d.Log.Error("new configuration refused: the old one stays in force", "reasons", err)
	}
}

// use puts a configuration in force. A lane whose ticks stay the same applies other new settings at
// its next attempt. A lane that is gone or whose ticks have changed gets no further tick; its
// successor begins when its run has finished.
func (d *Daemon) use(ctx context.Context, c *Config) {
	since := time.Now()
	d.inForce.Store(c)
	d.Metrics.inForce(c, since)
	d.upstream.hasten()
	d.catalogue.hasten()
	d.turns.delay(1) // until all new lanes have joined, so that the stalest catches up first
	var changed []*lane
	removed := maps.Clone(d.lanes)
	for _, l := range c.Lanes {
		before := d.lanes[l.Name()]
		delete(removed, l.Name())
		if before != nil && before.continues(l.Lane) {
			continue
		}
		next := &lane{Lane: l, d: d, cfg: c, since: since, before: before,
			done: make(chan struct{})}
		if before == nil || before.hasEnded() { // as if the lane were new
			next.before = nil
			next.begin(ctx)
		}
		changed = append(changed, next)
	}
	for _, l := range removed {
		l.stop()
	}
	for _, l := range changed {
		d.start(ctx, l)
	}
	d.turns.delay(-1)
	d.Log.Info("lanes run", "lanes", len(c.Lanes), "unchanged", len(c.Lanes)-len(changed),
		"holder", d.Holder)
}

// start starts a lane once the lane that it replaces has ended.
func (d *Daemon) start(ctx context.Context, l *lane) {
	ticks, stop := context.WithCancel(ctx)
	l.stop = func() { l.stopped = true; stop() }
	if l.before != nil {
		l.before.stop()
	}
	d.mu.Lock()
	d.lanes[l.Name()] = l
	d.mu.Unlock()
	d.all.Go(func() {
		defer close(l.done)
		defer stop()
		before := l.before
		if before == nil {
			l.run(ticks, ctx)
			return
		}
		l.before = nil
		<-before.done
		if ticks.Err() == nil {
			l.succeed(before)
			l.run(ticks, ctx)
			return
		}
		d.mu.Lock() // it never began, so its successor continues where its predecessor ended
		l.Lane, l.until = before.Lane, before.until
		l.missed, l.since = before.missed, before.since
		d.mu.Unlock()
	})
}

// await waits until all lanes have ended, for at most the grace period after the end of ctx.
func (d *Daemon) await(grace time.Duration) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.all.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(grace):
		return fmt.Errorf("%w of %s", ErrGrace, grace)
	}
}

func (d *Daemon) waiting() (n int64) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.inForce.Load().Lanes {
		if at := d.lanes[l.Name()]; at != nil && !at.until.IsZero() {
			n += l.Count(at.until, now)
		}
	}
	return n
}

// logShares logs the lanes' shares once for each day of the upstream on which units are short.
func (d *Daemon) logShares(p Policy, shares []share.Share, until time.Time) {
	_, reset := p.Day.Bounds(time.Now())
	credential := p.Budget.Credential
	d.mu.Lock()
	logged := d.short[credential].Equal(reset)
	d.short[credential] = reset
	d.mu.Unlock()
	if logged {
		return
	}
	for _, s := range shares {
		d.Log.Warn("units are short", "until", until.UTC().Truncate(time.Second),
			"lane", s.Name(), "weight", s.Weight, "priority", s.Priority,
			"entitled", s.Entitled, "spent", s.Spent, "wants", s.Wants, "runs", s.Runs,
			"remaining", s.Remaining)
	}
}
