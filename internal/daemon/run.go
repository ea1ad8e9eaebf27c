package daemon

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"quotabudget/internal/catalog"
	"quotabudget/internal/ingest"
	"quotabudget/internal/metrics"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/schedule"
	"quotabudget/internal/youtube/fault"
)

// chartsRead is how many of a region's newest charts are looked at for that of a tick.
const chartsRead = 50

// Outcomes that are not those of a sweep.
const (
	leftOut   = "left_out"  // its share of the day said no
	paced     = "paced"     // denied by a pace: units are left, for later
	overtaken = "overtaken" // too late
	panicked  = "panicked"
)

// process runs a claimed tick. A panic is logged and counts as a run: the next tick comes like any
// other.
func (l *lane) process(ctx context.Context, tick schedule.Tick) (result state) {
	defer func() {
		if cause := recover(); cause != nil {
			l.Metrics.panics.Inc()
			l.Metrics.sweeps.WithLabelValues(panicked).Inc()
			l.Metrics.failures.WithLabelValues(l.Region, metrics.Panicked).Inc()
			l.Log.Error("run panicked; the next tick runs as usual", "tick", tick.ID(), "panic", fmt.Sprint(cause),
				"stack", string(debug.Stack()))
			result = done
		}
	}()
	begun, complete, err := l.known(ctx, tick)
	switch {
	case err != nil:
		return l.retry(tick, err)
	case complete:
		l.Log.Info("tick done: its chart is already complete", "tick", tick.ID())
		return done
	}
	if begun { // by a daemon that has crashed, or by this one before a pause: it was decided then
		return l.sweep(ctx, tick)
	}
	// The chart of an earlier tick was decided for that one only. This tick spends too, so its
	// share is asked first, as for any run: were it not, a lane that is cut off again and again
	// would run at every tick, whatever its weight. It is asked for a whole run, which is what
	// every tick to come may cost; what a resumed run does not need is left to the day.
	runs, err := l.admitted(ctx, tick)
	if err != nil {
		return l.retry(tick, err)
	}
	if !runs {
		return done
	}
	switch err := l.resume(ctx, tick); {
	case err != nil && ctx.Err() != nil:
		return open
	case err != nil:
		return l.retry(tick, err)
	}
	return l.sweep(ctx, tick)
}

// retry leaves the tick to be run again soon, because the ledger or the catalogue failed before
// anything was bought.
func (l *lane) retry(tick schedule.Tick, err error) state {
	if fromLedger(err) {
		l.uncharged.Store(true)
		l.ledger.failed(err)
	} else {
		l.catalogue.failed(err)
	}
	l.Log.Debug("cannot run tick, retrying", "tick", tick.ID(), "error", err)
	return open
}

func fromLedger(err error) bool {
	return errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable)
}

// known looks for the chart of a tick: another daemon may have begun it, or have crashed between
// its last page and the claim's end. A tick whose chart was passed on to a later one has none any
// more, but a claim that says done: it does not come here again.
func (l *lane) known(ctx context.Context, tick schedule.Tick) (begun, complete bool, err error) {
	charts, err := l.work.Sweep.Catalog.Charts(context.WithoutCancel(ctx), catalog.ChartKey{Region: l.Region}, chartsRead)
	for _, c := range charts {
		if c.Run == tick.ID() {
			begun, complete = true, complete || !c.CompletedAt.IsZero()
		}
	}
	return begun, complete, err
}

// admitted decides by the shares, while units are short, and says so.
func (l *lane) admitted(ctx context.Context, tick schedule.Tick) (bool, error) {
	standing, err := l.work.standing(ctx)
	if err != nil {
		return true, err
	}
	decision, book, err := standing.admit(ctx, l.index, tick.At)
	if err != nil {
		return true, err
	}
	if decision.Short {
		l.tell(book.Shares(standing.at.UnixMicro(), standing.left))
	}
	if !decision.Run && l.work.Sweep.Budget.Observe {
		l.Log.Info("tick would be left out: it is observed only", "tick", tick.ID(), "share", decision.String())
		return true, nil
	}
	if !decision.Run {
		l.Metrics.sweeps.WithLabelValues(leftOut).Inc()
		l.Log.Info("tick left out", "tick", tick.ID(), "share", decision.String())
	}
	return decision.Run, nil
}

// sweep reads the chart of a tick.
func (l *lane) sweep(ctx context.Context, tick schedule.Tick) state {
	sweep, client := l.work.Sweep, *l.work.Sweep.Client
	client.Guard = l.upstream.guard(tick.ID())
	sweep.Client = &client
	sweep.Regions, sweep.Pages = []regions.Region{regions.Region(l.Region)}, int(l.Pages)
	sweep.Job, sweep.Run, sweep.OnlyThisRun = l.Job, tick.ID(), true
	sweep.Grace = l.work.Grace * 3 / 4 // the rest is for the claim
	var err error
	if sweep.Unpaced, err = l.work.Unpaced(ctx); err != nil {
		l.Log.Warn("cannot tell whether the region has had its floor: it is paced", "tick", tick.ID(), "error", err)
	}
	sum, err := sweep.Execute(ctx)
	if err == nil && len(sum.Regions) == 1 {
		err = sum.Regions[0].Err()
	}
	return l.outcome(ctx, tick, sum, err)
}

// outcome says whether a run has done its tick. One that was denied or has failed is done: the next
// tick is its retry.
func (l *lane) outcome(ctx context.Context, tick schedule.Tick, sum ingest.Summary, err error) state {
	result := string(sum.Outcome)
	if sum.Outcome == ingest.Exhausted && sum.Limit == quota.PaceName {
		result = paced
	}
	attrs := []any{"tick", tick.ID(), "outcome", result}
	for bucket, units := range sum.Units {
		attrs = append(attrs, "units."+bucket, units)
	}
	kind, upstream := fault.KindOf(err)
	ended := l.noteStores(ctx, sum, err)
	switch {
	case upstream && kind == fault.BadCredential && l.work != l.now.Load():
		l.Log.Warn("the upstream refuses the key that was in force before the reload, retrying", append(attrs, "error", err)...)
		return open
	case upstream && kind == fault.BadCredential:
		l.Metrics.failures.WithLabelValues(l.Region, failureKind(err)).Inc()
		l.Log.Error("the upstream refuses the key: the daemon ends", append(attrs, "error", err)...)
		l.refused.CompareAndSwap(nil, &err)
		l.end()
		return open
	case sum.Outcome == ingest.Complete:
		l.Log.Info("tick done", attrs...)
	case sum.Outcome == ingest.Exhausted:
		l.Log.Warn("tick denied", append(attrs, "limit", sum.Limit, "retry_at", sum.RetryAt)...)
	case ctx.Err() != nil:
		l.Log.Info("run ended before its chart was complete", append(attrs, "cause", context.Cause(ctx))...)
		return open
	case ended:
		l.Metrics.failures.WithLabelValues(l.Region, failureKind(err)).Inc()
		l.Log.Debug("run ended early, retrying", append(attrs, "error", err)...)
		return open
	case kind == fault.BadRegion && sum.Regions[0].Known:
		l.Log.Debug("tick left out: the upstream knows no such region", append(attrs, "error", err)...)
	case kind == fault.BadRegion:
		l.Log.Error("the upstream knows no such region: remove it from the configuration; it is asked for once a week",
			append(attrs, "error", err)...)
	default:
		l.Metrics.failures.WithLabelValues(l.Region, failureKind(err)).Inc()
		l.Log.Error("tick failed", append(attrs, "error", err)...)
	}
	l.Metrics.sweeps.WithLabelValues(result).Inc()
	return done
}

// noteStores notes what a run has found out about ledger and catalogue, and reports whether it
// ended because one of them, or the upstream, is away.
func (l *lane) noteStores(ctx context.Context, sum ingest.Summary, err error) bool {
	_, upstream := fault.KindOf(err)
	noLedger, noCatalogue := !upstream && fromLedger(err), errors.Is(err, ingest.ErrCatalogue)
	switch {
	case noLedger:
		l.uncharged.Store(true)
		l.ledger.failed(err)
	case noCatalogue:
		l.catalogue.failed(err)
	case ctx.Err() == nil && len(sum.Regions) == 1 && !sum.Regions[0].Known: // both were asked
		l.uncharged.Store(false)
		l.ledger.works()
		l.catalogue.works()
	}
	return noLedger || noCatalogue || errors.Is(err, errDown)
}

// failureKind says in a word what kept a run from its chart, for metrics.
func failureKind(err error) string {
	if errors.Is(err, errDown) {
		return fault.Transient.String()
	}
	return metrics.FailureKind(err)
}
