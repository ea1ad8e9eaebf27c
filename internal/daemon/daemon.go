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

	"quotabudget/internal/forecast"
	"quotabudget/internal/ingest"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// Daemon sees every tick of its lanes through. Its fields are set once before Run.
//
// A tick is claimed in the ledger under its ID, with a lease that is renewed while it runs. Who
// finds it held looks again until it is done, or takes it over when the lease lapses; so the ticks
// of a lane are done in their order, by one daemon each, and a job never overlaps itself. The
// tick's ID is the run of its chart too: a takeover goes on at the page that is not stored yet.
//
//	10:00:00  a claims trending/BR/2026-06-01T10:00:00Z, b finds it held
//	10:00:01  a stores pages 1 and 2, and is killed
//	10:02:00  the lease lapses
//	10:02:10  b claims it, fetches pages 3 and 4, and marks it done
//
// A tick that is denied in mid-chart is done too. The next tick of the lane goes on with that chart
// while it is fresh (ingest.DefaultResume): the chart is passed on to it, and is its own from then
// on.
//
//	10:00:00  trending/BR/2026-06-01T10:00:00Z gets pages 1 and 2, and is denied
//	10:10:00  trending/BR/2026-06-01T10:10:00Z gets pages 3 and 4
//	10:20:00  trending/BR/2026-06-01T10:20:00Z begins a new chart
type Daemon struct {
	Work    *Work                                // to begin with
	Load    func(context.Context) (*Work, error) // reads the configuration anew; nil where nothing is reloaded
	Reload  <-chan struct{}                      // asks for it
	Holder  string                               // of the claims: quota.NewID at the start of the process
	Runs    int                                  // at most so many at once; 0 for DefaultRuns
	Log     *slog.Logger
	Metrics *Metrics

	turns   turns
	mu      sync.Mutex
	handled map[string]mark // by lane
	short   time.Time       // the reset of the day whose shares were told last
	now     atomic.Pointer[Work]
	refused atomic.Pointer[error] // the upstream refuses the key
	end     context.CancelFunc    // of Run
	watch   forecast.Watch

	ledger, catalogue outage
	uncharged         atomic.Bool // it was a run that found the ledger away: it may still take claims
	upstream          breaker
}

// DefaultRuns is how many runs there may be at once.
const DefaultRuns = 4

// Work is what one configuration comes to. Its fields are set once.
type Work struct {
	Lanes   []share.Lane
	Sweep   ingest.Sweep // of every run, but for its region, pages and names
	Claims  quota.Claims // of the ledger of Sweep.Budget
	Jitter  time.Duration
	CatchUp bool
	Lease   time.Duration // at least a second
	Grace   time.Duration // from the end of the context to the end of Run

	Foretell time.Duration // how often to ask when the buckets will run dry; 0 for never
}

// mark is how far a lane has come.
type mark struct {
	until time.Time  // ticks that run up to then are done
	lane  share.Lane // as it was
}

// ErrGrace says that runs were still under way when the grace period was over.
var ErrGrace = errors.New("runs did not end within the grace period")

// Run runs the lanes until ctx ends. Then no page is asked for any more, the one under way is
// stored, and claims are given back. It returns nil, or ErrGrace. It ends by itself when the
// upstream refuses the key, and returns that error: every further tick would be charged and
// refused.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	d.end = end
	d.turns.free = d.Runs
	if d.Runs == 0 {
		d.turns.free = DefaultRuns
	}
	d.handled = make(map[string]mark)
	d.prepareOutages()
	defer func() {
		for _, o := range d.outages() {
			o.stop()
		}
	}()
	all := &lanes{Daemon: d, byName: make(map[string]*running)}
	for w, since := d.Work, time.Now(); w != nil; w, since = d.next(ctx) {
		all.use(ctx, w, since)
	}
	if err := all.await(d.now.Load().Grace); err != nil {
		return err
	}
	if refused := d.refused.Load(); refused != nil {
		return *refused
	}
	return nil
}

// next waits for a configuration that can be used, and says when it came. A bad one is told, and
// the one in force stays.
func (d *Daemon) next(ctx context.Context) (*Work, time.Time) {
	for {
		select {
		case <-ctx.Done():
			return nil, time.Time{}
		case <-d.Reload:
		}
		w, err := d.Load(ctx)
		d.Metrics.reload.done(err)
		if err == nil {
			d.Log.Info("configuration reloaded")
			return w, time.Now()
		}
		d.Log.Error("new configuration refused: the old one stays in force", "reasons", err)
	}
}

// settle notes that the ticks of a lane up to a moment are done.
func (d *Daemon) settle(l share.Lane, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handled[l.Name()] = mark{until, l}
}

func (d *Daemon) settled(l share.Lane) (mark, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, ok := d.handled[l.Name()]
	return m, ok
}

// tell logs who gets what, once for each of the upstream's days that is short.
func (d *Daemon) tell(shares share.Shares, short bool) {
	_, reset := d.now.Load().Sweep.Day.Bounds(time.Now())
	d.mu.Lock()
	known := !short || d.short.Equal(reset)
	if !known {
		d.short = reset
	}
	d.mu.Unlock()
	if known {
		return
	}
	for _, s := range shares.Lanes {
		d.Log.Warn("units are short", "until", shares.Until.UTC().Truncate(time.Second), "region", s.Region, "weight", s.Weight,
			"priority", s.Priority, "entitled", s.Entitled, "spent", s.Spent, "wants", s.Wants, "runs", s.Runs, "remaining", s.Remaining)
	}
	for _, loan := range share.Loans(shares.Lanes) {
		d.Log.Info("units are left to another region", "from", loan.From, "to", loan.To, "units", loan.Units)
	}
}
