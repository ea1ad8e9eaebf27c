// Package ingest sweeps the regions: it reads their charts from the upstream into the catalogue.
package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/youtube"
	"quotabudget/internal/youtube/fault"
)

// Sweep is one pass over the regions, the one whose last complete chart is oldest first. Its fields
// are set once before Execute.
type Sweep struct {
	Client   *youtube.Client // on a meter.Transport
	Catalog  *catalog.Catalog
	Budget   *quota.Budget // to ask when a suspended bucket opens
	Regions  []regions.Region
	Parallel int // regions read side by side at most; 0 for 1
	Pages    int // read of each chart at most; 0 for all
	// OnlyThisRun resumes only a chart that is of Run, and asks for no page before the last one is
	// stored.
	OnlyThisRun bool
	Resume      time.Duration // how old a chart may be to be resumed; 0 for DefaultResume
	// Grace is how long the pages under way, their retries too, may take after ctx has ended; 0 for
	// DefaultGrace.
	Grace   time.Duration
	Unpaced func(region string) bool // whose pages no pace holds back; nil for none
	Day     quota.Window             // the upstream's, for which a missing chart is remembered
	Job     string                   // label of the charges
	Run     string                   // label of the charges, and whose the charts are
	Now     func() time.Time
	Log     *slog.Logger
	Watch   func(Event) // called with each step, one at a time; nil for nobody
}

// Defaults of a sweep.
const (
	DefaultResume = 15 * time.Minute
	DefaultGrace  = 10 * time.Second
)

// Event is one step of a sweep.
type Event struct {
	Region  string
	Pages   int     // stored so far
	Videos  int     // on them
	Outcome Outcome // "" while the region is being read
	Units   int64   // charged for the region; 0 while it is being read
}

// ErrCatalogue is wrapped by the error of a sweep whose catalogue cannot be read or takes no more
// pages.
var ErrCatalogue = errors.New("catalogue")

// Execute runs the sweep until every region was visited, the units are gone, or ctx ends; then the
// pages under way are finished within the grace period, stored, and no further one is asked for.
// The summary always says what was done. The error, if any, is why the sweep could not go on: a
// credential that was refused, a ledger or an upstream that cannot be reached, a catalogue that
// takes no more. Exhaustion is not an error.
//
// Parallel goroutines read, and store what they read. A panic of any is the caller's.
func (s *Sweep) Execute(ctx context.Context) (Summary, error) {
	order, err := s.order(context.WithoutCancel(ctx))
	if err != nil {
		return Summary{Outcome: Failed}, err
	}
	work, end := s.graceful(ctx)
	defer end(nil)
	q := newQueue(ctx, order, s.Pages)
	q.end = end
	var readers sync.WaitGroup
	for range min(max(s.Parallel, 1), len(order)) {
		r := &reader{Sweep: s, queue: q}
		readers.Go(func() { r.sweep(work) })
	}
	readers.Wait()
	if q.panicked != "" {
		panic(q.panicked)
	}
	return s.summarize(order, q), q.fatal()
}

// graceful is a context that outlives ctx by the grace period.
func (s *Sweep) graceful(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		grace := cmp.Or(s.Grace, DefaultGrace)
		timer := time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(work, func() { timer.Stop() })
	})
	return work, func(cause error) { stop(); cancel(cause) }
}

// visit is a region in its turn, and what it comes to.
type visit struct {
	Region // Known from the beginning if it is not to be asked for

	// Once it is under way:
	tally meter.Tally
	wants int64 // pages that it may still ask for
	heard int   // by the queue, before its last request began
}

// askInvalid is how long a region that the upstream has refused is not asked for again. Such a
// region hardly ever becomes one of the upstream's, and each question costs a unit.
const askInvalid = 7 * 24 * time.Hour

// order puts the stalest region first.
func (s *Sweep) order(ctx context.Context) ([]*visit, error) {
	names := make([]string, len(s.Regions))
	for i, r := range s.Regions {
		names[i] = string(r)
	}
	states, err := s.Catalog.Staleness(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCatalogue, err)
	}
	complete := make(map[regions.Region]time.Time, len(states))
	visits := make(map[regions.Region]*visit, len(states))
	for _, state := range states {
		region := regions.Region(state.Region)
		complete[region], visits[region] = state.CompletedAt, &visit{Region: s.known(state)}
	}
	var order []*visit
	for _, r := range regions.Order(s.Regions, complete) {
		order = append(order, visits[r])
	}
	return order, nil
}

// known is a region before its visit. What the upstream said of it a short while ago need not be
// asked again: that it has no chart, for the rest of its day, or that it knows no such region, for
// a week.
func (s *Sweep) known(state catalog.RegionState) Region {
	r := Region{Region: state.Region, Outcome: Skipped}
	now := s.Now()
	today, _ := s.Day.Bounds(now)
	again := state.UnavailableAt.Add(askInvalid)
	switch {
	case state.UnavailableAt.IsZero():
	case state.Invalid && now.Before(again):
		r.Known, r.Outcome = true, Failed
		r.err = &fault.Error{Fault: fault.Fault{Kind: fault.BadRegion, Message: fmt.Sprintf(
			"refused on %s, not asked for again before %s",
			state.UnavailableAt.Format(time.DateOnly), again.Format(time.DateOnly))}}
	case !state.Invalid && !state.UnavailableAt.Before(today):
		r.Known, r.Outcome = true, Unavailable
	}
	return r
}
