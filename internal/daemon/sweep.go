package daemon

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"quotabudget/internal/ingest"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
	"quotabudget/internal/youtube"
)

// chartMethod is the method that a page of a chart is charged as.
const chartMethod = "youtube.videos.list"

// Sweep is the work of lanes that each fetch the chart of a region. The fields of ingest.Sweep
// apply to every run, except its region, pages and names.
type Sweep struct {
	ingest.Sweep
	Jitter  time.Duration
	CatchUp bool
}

// Lanes returns the lanes with this work.
func (s *Sweep) Lanes(lanes []share.Lane) []Lane {
	all := make([]Lane, len(lanes))
	for i, l := range lanes {
		all[i] = Lane{l, s}
	}
	return all
}

func (s *Sweep) policy() Policy {
	return Policy{Budget: s.Budget, Day: s.Day, Jitter: s.Jitter, CatchUp: s.CatchUp, Queued: true}
}

// wants sets the pages that a run wants to the number in its region's last chart.
func (s *Sweep) wants(ctx context.Context, l *share.Lane) error {
	l.Price = s.Budget.Prices[chartMethod]
	pages, err := s.Catalog.PagesWanted(context.WithoutCancel(ctx), l.Region, l.Pages)
	if err == nil {
		l.Pages = pages
	}
	return err
}

func (s *Sweep) served(ctx context.Context, l *share.Lane) time.Time {
	states, err := s.Catalog.Staleness(context.WithoutCancel(ctx), []string{l.Region})
	if err != nil {
		return time.Time{}
	}
	return states[0].CompletedAt
}

// chartsRead is how many of a region's newest charts are searched for a tick's chart.
const chartsRead = 50

// earlier finds the charts of ticks. Another daemon may have begun one, or crashed between its last
// page and the mark. A tick whose chart a later tick resumed has none, but is marked done.
func (s *Sweep) earlier(ctx context.Context, l *lane) (earlierTicks, error) {
	charts, err := s.Catalog.Charts(context.WithoutCancel(ctx), l.Region, chartsRead)
	k := earlierTicks{runs: make(map[string]bool)}
	for _, c := range charts {
		k.runs[c.Run] = k.runs[c.Run] || !c.CompletedAt.IsZero()
		if c.CompletedAt.After(k.newest) {
			k.newest = c.CompletedAt
		}
	}
	return k, err
}

// run fetches the chart of a tick, or the rest of it.
func (s *Sweep) run(ctx context.Context, l *lane, tick schedule.Tick, begun bool) result {
	if !begun {
		switch err := s.resume(ctx, l, tick); {
		case err != nil && ctx.Err() != nil:
			return retry
		case err != nil:
			return l.retry(tick, err)
		}
	}
	return s.sweep(ctx, l, tick)
}

// resume moves an incomplete chart of an earlier tick of the lane to this admitted tick, if the
// chart is still fresh, so that the sweep buys only the missing pages.
//
// The earlier tick must be done, if only by a denial. A tick that was lost in a crash will still
// run, and keeps its chart.
func (s *Sweep) resume(ctx context.Context, l *lane, tick schedule.Tick) error {
	ctx = context.WithoutCancel(ctx)
	chart, ok, err := s.Catalog.Resume(ctx, l.Region,
		time.Now().Add(-ingest.DefaultResume))
	if err != nil || !ok {
		return err
	}
	scheduled, err := time.Parse(time.RFC3339, strings.TrimPrefix(chart.Run, l.Name()+"/"))
	earlier := l.Tick(scheduled) // the schedule may have changed since
	if err != nil || !earlier.Scheduled.Before(tick.Scheduled) {
		return nil
	}
	if state, err := l.markOf(ctx, earlier); err != nil || state != quota.ClaimDone {
		return err
	}
	passed, err := s.Catalog.PassOn(ctx, chart.ID, chart.Run, tick.ID())
	if passed {
		l.d.Log.Info("resuming the chart of an earlier tick", "tick", tick.ID(),
			"earlier", earlier.ID(), "pages", chart.Pages)
	}
	return err
}

func (s *Sweep) sweep(ctx context.Context, l *lane, tick schedule.Tick) result {
	sweep, client := s.Sweep, *s.Client
	client.Guard = l.whileLeased(l.d.breaker.guard(tick.ID()))
	sweep.Client = &client
	sweep.Regions, sweep.Pages = []regions.Region{regions.Region(l.Region)}, int(l.Pages)
	sweep.Job, sweep.Run, sweep.OnlyThisRun = l.Job, tick.ID(), true
	sweep.Grace = l.cfg.Grace * 3 / 4 // leaves time for the mark and the lease
	unpaced := l.unpaced(ctx, tick)
	sweep.Unpaced = func(string) bool { return unpaced }
	sum, err := sweep.Execute(ctx)
	if err == nil && len(sum.Regions) == 1 {
		err = sum.Regions[0].Err()
	}
	return s.ended(ctx, l, tick, sum, err)
}

// ended logs the result of a run, and returns whether its tick is done. A denied or failed tick is
// done: the next tick is its retry.
func (s *Sweep) ended(ctx context.Context, l *lane, tick schedule.Tick, sum ingest.Summary,
	err error) result {
	d, e := l.d, ending{outcome: string(sum.Outcome), units: sum.Units}
	if sum.Outcome == ingest.Exhausted && sum.Limit == quota.PaceName {
		e.outcome = paced
	}
	attrs := append([]any{"tick", tick.ID()}, e.attrs()...)
	if err != nil && sum.Outcome != ingest.Exhausted {
		attrs = append(attrs, "error", err)
	}
	kind, upstream := youtube.KindOf(err)
	cut := ctx.Err() != nil || errors.Is(err, errLost)
	isKnown := len(sum.Regions) == 1 && sum.Regions[0].Known
	away := d.recordOutages(len(sum.Regions) == 1 && !isKnown && !cut, err)
	switch {
	case upstream && kind == youtube.BadCredential && l.cfg != d.inForce.Load():
		d.Log.Warn("the upstream refuses the key that was in force before the reload, retrying",
			attrs...)
		return retry
	case upstream && kind == youtube.BadCredential:
		d.Metrics.countFailure(l, err)
		d.Log.Error("the upstream refuses the key: the daemon ends", attrs...)
		d.refused.CompareAndSwap(nil, &err)
		d.end()
		return retry
	case sum.Outcome == ingest.Complete:
		d.Log.Info("tick done", attrs...)
	case sum.Outcome == ingest.Exhausted:
		d.Log.Warn("tick denied", append(attrs, "limit", sum.Limit, "retry_at", sum.RetryAt)...)
	case cut:
		d.Log.Info("run ended before its chart was complete",
			append(attrs, "cause", cmp.Or(context.Cause(ctx), errLost))...)
		return retry
	case away:
		d.Metrics.countFailure(l, err)
		d.Log.Debug("run ended early, retrying", attrs...)
		return retry
	case kind == youtube.BadRegion && isKnown:
		d.Log.Debug("tick left out: the upstream has no such region", attrs...)
	case kind == youtube.BadRegion:
		d.Log.Error("the upstream has no such region: remove it from the configuration; "+
			"it is retried once a week", attrs...)
	default:
		d.Metrics.countFailure(l, err)
		d.Log.Error("tick failed", attrs...)
	}
	l.ended(ctx, tick, e)
	return done
}

// recordOutages records whether a sweep reached the ledger and the catalogue, and reports whether
// one of them, or the upstream, is away. asked means that the sweep used both stores unless one of
// them failed.
func (d *Daemon) recordOutages(asked bool, err error) (away bool) {
	_, upstream := youtube.KindOf(err)
	switch {
	case !upstream && fromLedger(err):
		d.uncharged.Store(true)
		d.ledger.failed(err)
		return true
	case errors.Is(err, ingest.ErrCatalogue):
		d.catalogue.failed(err)
		return true
	case asked:
		d.uncharged.Store(false)
		d.ledger.works()
		d.catalogue.works()
	}
	return errors.Is(err, errDown)
}
