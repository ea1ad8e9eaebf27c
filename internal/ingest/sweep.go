// Package ingest sweeps the regions: it reads their charts from the upstream into the catalogue.
package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/youtube"
)

// Sweep is one pass over the regions, stalest first: the one whose last complete chart is oldest.
// Its fields are set before Execute and not changed afterwards.
type Sweep struct {
	Client      *youtube.Client // uses a meter.Transport
	Catalog     *catalog.Catalog
	Budget      *quota.Budget // asked when a suspended bucket opens
	Regions     []regions.Region
	Parallel    int           // maximum regions read at once; 0 for 1
	Pages       int           // maximum pages of each chart; 0 for all
	OnlyThisRun bool          // resumes only charts of Run
	Resume      time.Duration // maximum age of a chart to resume; 0 for DefaultResume
	// Grace is how long the pages in progress, with their retries, may take after ctx has ended;
	// 0 for DefaultGrace.
	Grace   time.Duration
	Unpaced func(region string) bool // regions whose pages no pace delays; nil for none
	Day     quota.Window             // the upstream's day, for which a missing chart is remembered
	Job     string                   // label of the charges
	Run     string                   // label of the charges, and owner of the charts
	Now     func() time.Time
	Log     *slog.Logger
	Watch   func(Event) // called with each step, one at a time; may be nil
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
	Videos  int     // on these pages
	Outcome Outcome // "" while the region is being read
	Units   int64   // charged for the region; 0 while it is being read
}

// ErrCatalogue is wrapped by the error of a sweep whose catalogue cannot be read or written.
var ErrCatalogue = errors.New("catalogue")

// Execute runs the sweep until every region was visited, the units are used up, or ctx ends. Then
// it finishes the pages in progress within the grace period, stores them, and requests no more.
// The summary is always valid. The error, if any, is why the sweep could not go on: a refused
// credential, a ledger or an upstream that cannot be reached, or a catalogue that cannot store
// pages. Exhaustion is not an error.
//
// Parallel goroutines read and store pages. If one panics, Execute panics.
func (s *Sweep) Execute(ctx context.Context) (Summary, error) {
	order, err := s.order(context.WithoutCancel(ctx))
	if err != nil {
		return Summary{Outcome: Failed}, err
	}
	work, end := s.graceful(ctx)
	defer end(nil)
	q := &queue{stop: ctx, end: end, pending: slices.Clone(order), pages: max(int64(s.Pages), 1),
		units: make(map[string]int64)}
	q.changed.L = &q.mu
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

// graceful returns a context that outlives ctx by the grace period.
func (s *Sweep) graceful(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		grace := cmp.Or(s.Grace, DefaultGrace)
		timer := time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(work, func() { timer.Stop() })
	})
	return work, func(cause error) { stop(); cancel(cause) }
}

// visit is one region's place in the sweep, and its result.
type visit struct {
	Region // Known is set at the start if the upstream need not be asked

	// Set during the visit:
	tally   meter.Tally
	wants   int64 // pages it may still request
	signals int   // queue.signals when its last request began
}

// askInvalid is how long a region that the upstream has refused is not requested again. The
// upstream hardly ever adds such a region, and each request costs a unit.
const askInvalid = 7 * 24 * time.Hour

// order returns the visits, stalest region first.
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

// known returns a region before its visit. A recent answer need not be asked for again: a missing
// chart holds for the rest of the upstream's day, an unknown region for a week.
func (s *Sweep) known(state catalog.RegionState) Region {
	r := Region{Region: state.Region, Outcome: Skipped}
	now := s.Now()
	today, _ := s.Day.Bounds(now)
	again := state.UnavailableAt.Add(askInvalid)
	switch {
	case state.UnavailableAt.IsZero():
	case state.Invalid && now.Before(again):
		r.Known, r.Outcome = true, Failed
		r.err = &youtube.Error{Fault: youtube.Fault{Kind: youtube.BadRegion, Message: fmt.Sprintf(
			"refused on %s, not asked for again before %s",
			state.UnavailableAt.Format(time.DateOnly), again.Format(time.DateOnly))}}
	case !state.Invalid && !state.UnavailableAt.Before(today):
		r.Known, r.Outcome = true, Unavailable
	}
	return r
}
