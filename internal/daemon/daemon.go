// Package daemon runs the lanes of a schedule, each tick once, however many daemons share the
// ledger.
package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/forecast"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// Daemon runs every tick of its lanes. Its fields are set once before Run.
//
// Daemons share the work by claims in the ledger. One is a lease on the lane: who has it runs the
// lane's ticks, and renews it meanwhile, so a lane never overlaps itself. The other is a mark on
// the tick: that it came, and in the end that it is done. A daemon that finds the lane leased looks
// again until the tick is done, or takes it over when the lease lapses. The tick's ID is the run of
// its chart, so a takeover begins at the first page that is not stored.
//
//	10:00:00  a leases trending/BR and marks trending/BR/2026-06-01T10:00:00Z; b finds it leased
//	10:00:01  a stores pages 1 and 2, and is killed
//	10:02:00  the lease lapses
//	10:02:10  b leases the lane, fetches pages 3 and 4, and marks the tick done
//
// A tick whose chart a denial interrupts is done, too. The lane's next tick resumes that chart
// while it is fresh (ingest.DefaultResume), and owns it from then on.
//
//	10:00:00  trending/BR/2026-06-01T10:00:00Z gets pages 1 and 2, and is denied
//	10:10:00  trending/BR/2026-06-01T10:10:00Z gets pages 3 and 4
//	10:20:00  trending/BR/2026-06-01T10:20:00Z begins a new chart
type Daemon struct {
	Config  *Config                                // to begin with
	Load    func(context.Context) (*Config, error) // reads it again
	Reload  <-chan struct{}                        // asks for it; nil for never
	Holder  string                                 // of the leases: quota.NewID at the start
	Log     *slog.Logger
	Metrics *Metrics

	// What the lanes share.
	inForce                     atomic.Pointer[Config]
	turns                       turns
	ledger, catalogue, upstream dependency
	uncharged                   atomic.Bool // the ledger failed in a run: it may still take claims
	breaker                     breaker

	mu       sync.Mutex
	progress map[string]progress  // by lane
	short    map[string]time.Time // by credential: the reset of the day that was logged last

	verdicts map[string]*forecast.Watch // by credential
	refused  atomic.Pointer[error]      // the upstream refuses the key
	end      context.CancelFunc         // of Run
}

// MaxRuns is how many runs there may be at once.
const MaxRuns = 4

// Config is what a configuration comes to. Its fields are set once.
type Config struct {
	Lanes  []Lane
	Claims quota.Claims // of the ledger of all their budgets
	// Catalog keeps how the last ticks of each lane ended; nil for nowhere.
	Catalog *catalog.Catalog
	Lease   time.Duration // at least a second
	Grace   time.Duration // from the end of the context to the end of Run

	ForecastEvery time.Duration // 0 for never
	// Elsewhere are the lanes that others run and that spend from a credential, for the forecast;
	// nil for none.
	Elsewhere func(ctx context.Context, credential string) ([]share.Lane, error)
}

type progress struct {
	until time.Time  // its ticks are done up to then
	lane  share.Lane // as it was
}

// ErrGrace says that runs were still under way when the grace period was over.
var ErrGrace = errors.New("runs did not end within the grace period")

// Run runs the lanes until ctx ends. Then no further page is fetched, the ones under way are
// stored, and leases are returned. It returns nil, or ErrGrace. It ends by itself when the upstream
// refuses the key, and returns that error: every further tick would be charged and refused.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, d.end = context.WithCancel(ctx)
	defer d.end()
	d.turns.free = MaxRuns
	d.progress, d.short = make(map[string]progress), make(map[string]time.Time)
	d.verdicts = make(map[string]*forecast.Watch)
	d.describe()
	defer d.upstream.stop()
	defer d.catalogue.stop()
	all := &workers{d: d, byName: make(map[string]*worker)}
	all.use(ctx, d.Config, time.Now())
	all.all.Go(func() { d.forecast(ctx) })
	all.all.Go(func() { d.askLedger(ctx) })
	for c, since := d.next(ctx); c != nil; c, since = d.next(ctx) {
		all.use(ctx, c, since)
	}
	if err := all.await(d.inForce.Load().Grace); err != nil {
		return err
	}
	if refused := d.refused.Load(); refused != nil {
		return *refused
	}
	return nil
}

// next waits for a configuration that can be used; nil when ctx ends.
func (d *Daemon) next(ctx context.Context) (*Config, time.Time) {
	for {
		select {
		case <-ctx.Done():
			return nil, time.Time{}
		case <-d.Reload:
		}
		c, err := d.Load(ctx)
		d.Metrics.reload.done(err)
		if err == nil {
			d.Log.Info("configuration reloaded")
			return c, time.Now()
		}
		d.Log.Error("new configuration refused: the old one stays in force", "reasons", err)
	}
}

// recordDone records that the ticks of a lane are done up to a moment.
func (d *Daemon) recordDone(l share.Lane, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress[l.Name()] = progress{until, l}
}

func (d *Daemon) progressOf(l share.Lane) (progress, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.progress[l.Name()]
	return p, ok
}

// waiting is how many ticks have come and are not done.
func (d *Daemon) waiting() (n int64) {
	now := time.Now()
	for _, l := range d.inForce.Load().Lanes {
		if p, ok := d.progressOf(l.Lane); ok {
			n += l.Count(p.until, now)
		}
	}
	return n
}

// logShares logs who gets what, once for each of the upstream's days that is short.
func (d *Daemon) logShares(p Policy, shares share.Shares) {
	_, reset := p.Day.Bounds(time.Now())
	credential := p.Budget.Credential
	d.mu.Lock()
	logged := d.short[credential].Equal(reset)
	d.short[credential] = reset
	d.mu.Unlock()
	if logged {
		return
	}
	until := shares.Until.UTC().Truncate(time.Second)
	for _, s := range shares.Lanes {
		d.Log.Warn("units are short", "until", until, "region", s.Title(), "weight", s.Weight,
			"priority", s.Priority, "entitled", s.Entitled, "spent", s.Spent, "wants", s.Wants,
			"runs", s.Runs, "remaining", s.Remaining)
	}
	for _, loan := range share.Loans(shares.Lanes) {
		d.Log.Info("units are left to another region", "from", loan.From, "to", loan.To,
			"units", loan.Units)
	}
}
