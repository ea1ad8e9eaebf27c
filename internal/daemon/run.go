package daemon

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/ingest"
	"quotabudget/internal/metrics"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/schedule"
	"quotabudget/internal/youtube/fault"
)

// Outcomes that are not those of a sweep.
const (
	leftOut   = "left_out"  // its share of the day said no
	paced     = "paced"     // denied by a pace: units are left, for later
	overtaken = "overtaken" // too late
	panicked  = "panicked"
)

// process runs a tick of a leased lane. A panic is logged and counts as a run: the next tick comes
// like any other.
func (l *lane) process(ctx context.Context, tick schedule.Tick) (result result) {
	defer func() {
		if cause := recover(); cause != nil {
			l.d.Metrics.panics.Inc()
			l.d.Metrics.sweeps.WithLabelValues(panicked).Inc()
			l.d.Metrics.failures.WithLabelValues(l.Region, metrics.Panicked).Inc()
			l.d.Log.Error("run panicked; the next tick runs as usual", "tick", tick.ID(),
				"panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			result = done
		}
	}()
	begun, complete, err := l.chartOf(ctx, tick)
	switch {
	case err != nil:
		return l.retry(tick, err)
	case complete:
		l.d.Log.Info("tick done: its chart is already complete", "tick", tick.ID())
		return done
	case begun: // by a daemon that has crashed, or by this one before a pause: it was decided then
		return l.sweep(ctx, tick)
	}
	// A resumed chart asks for its share like any other run, and for that of a whole run. Else a
	// lane that is interrupted again and again would run at every tick, whatever its weight.
	runs, err := l.admitted(ctx, tick)
	if err != nil {
		return l.retry(tick, err)
	}
	if !runs {
		return done
	}
	switch err := l.resume(ctx, tick); {
	case err != nil && ctx.Err() != nil:
		return retry
	case err != nil:
		return l.retry(tick, err)
	}
	return l.sweep(ctx, tick)
}

// retry leaves the tick to be run again soon, because the ledger or the catalogue failed before
// anything was bought.
func (l *lane) retry(tick schedule.Tick, err error) result {
	if fromLedger(err) {
		l.d.uncharged.Store(true)
		l.d.ledger.failed(err)
	} else {
		l.d.catalogue.failed(err)
	}
	l.d.Log.Debug("cannot run tick, retrying", "tick", tick.ID(), "error", err)
	return retry
}

func fromLedger(err error) bool {
	return errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable)
}

// chartOf looks for the chart of a tick: another daemon may have begun it, or have crashed between
// its last page and the mark. A tick whose chart a later one resumed has none any more, but is
// marked done: it does not come here again.
func (l *lane) chartOf(ctx context.Context, tick schedule.Tick) (begun, complete bool, err error) {
	charts, err := l.charts(ctx)
	for _, c := range charts {
		if c.Run == tick.ID() {
			begun, complete = true, complete || !c.CompletedAt.IsZero()
		}
	}
	return begun, complete, err
}

// admitted decides by the shares, while units are short, and logs that.
func (l *lane) admitted(ctx context.Context, tick schedule.Tick) (bool, error) {
	s, err := l.cfg.snapshot(ctx)
	if err != nil {
		return false, err
	}
	decision, book, err := s.admit(ctx, l.index, tick.At)
	if err != nil {
		return false, err
	}
	if decision.Short {
		if shares, short := book.Shares(s.at.UnixMicro(), s.left); short {
			l.d.logShares(shares)
		}
	}
	switch {
	case decision.Run:
	case l.cfg.Sweep.Budget.Observe:
		l.d.Log.Info("tick would be left out: it is observed only", "tick", tick.ID(),
			"share", decision.String())
		return true, nil
	default:
		l.d.Metrics.sweeps.WithLabelValues(leftOut).Inc()
		l.d.Log.Info("tick left out", "tick", tick.ID(), "share", decision.String())
	}
	return decision.Run, nil
}

// resume gives the tick the chart that an earlier tick of the lane left half, if it is still fresh,
// so that its sweep buys the missing pages only. It is called when the tick is to run: a tick that
// has a chart has been decided.
//
// The earlier tick must be done, be it by a denial. One that was lost in a crash is still to run,
// and keeps its chart.
func (l *lane) resume(ctx context.Context, tick schedule.Tick) error {
	ctx = context.WithoutCancel(ctx)
	cat := l.cfg.Sweep.Catalog
	chart, ok, err := cat.Resume(ctx, catalog.ChartKey{Region: l.Region},
		time.Now().Add(-ingest.DefaultResume))
	if err != nil || !ok {
		return err
	}
	earlier, ok := l.parse(chart.Run)
	if !ok || !earlier.Scheduled.Before(tick.Scheduled) {
		return nil
	}
	if state, err := l.markOf(ctx, earlier); err != nil || state != quota.ClaimDone {
		return err
	}
	passed, err := cat.PassOn(ctx, chart.ID, chart.Run, tick.ID())
	if passed {
		l.d.Log.Info("resuming the chart of an earlier tick", "tick", tick.ID(),
			"earlier", earlier.ID(), "pages", chart.Pages)
	}
	return err
}

// parse reads the ID of a tick of the lane, which may be one of an earlier schedule.
func (l *lane) parse(id string) (schedule.Tick, bool) {
	scheduled, err := time.Parse(time.RFC3339, strings.TrimPrefix(id, l.Name()+"/"))
	return schedule.Tick{Job: l.Job, Region: l.Region, Scheduled: scheduled,
		At: scheduled.Add(l.Offset)}, err == nil
}

func (l *lane) sweep(ctx context.Context, tick schedule.Tick) result {
	sweep, client := l.cfg.Sweep, *l.cfg.Sweep.Client
	client.Guard = l.d.breaker.guard(tick.ID())
	sweep.Client = &client
	sweep.Regions, sweep.Pages = []regions.Region{regions.Region(l.Region)}, int(l.Pages)
	sweep.Job, sweep.Run, sweep.OnlyThisRun = l.Job, tick.ID(), true
	sweep.Grace = l.cfg.Grace * 3 / 4 // the rest is for the mark and the lease
	var err error
	if sweep.Unpaced, err = l.cfg.Unpaced(ctx); err != nil {
		l.d.Log.Warn("cannot find whether the region has had its floor: it is paced",
			"tick", tick.ID(), "error", err)
	}
	sum, err := sweep.Execute(ctx)
	if err == nil && len(sum.Regions) == 1 {
		err = sum.Regions[0].Err()
	}
	return l.ended(ctx, tick, sum, err)
}

// ended logs how a run ended, and returns whether its tick is done. One that was denied or has
// failed is done: the next tick is its retry.
func (l *lane) ended(ctx context.Context, tick schedule.Tick, sum ingest.Summary,
	err error) result {
	d, outcome := l.d, string(sum.Outcome)
	if sum.Outcome == ingest.Exhausted && sum.Limit == quota.PaceName {
		outcome = paced
	}
	attrs := []any{"tick", tick.ID(), "outcome", outcome}
	for bucket, units := range sum.Units {
		attrs = append(attrs, "units."+bucket, units)
	}
	if err != nil && sum.Outcome != ingest.Exhausted {
		attrs = append(attrs, "error", err)
	}
	kind, upstream := fault.KindOf(err)
	failed := func() {
		word := metrics.FailureKind(err)
		if errors.Is(err, errDown) {
			word = fault.Transient.String()
		}
		d.Metrics.failures.WithLabelValues(l.Region, word).Inc()
	}
	away := l.heardFrom(ctx, sum, err)
	switch {
	case upstream && kind == fault.BadCredential && l.cfg != d.inForce.Load():
		d.Log.Warn("the upstream refuses the key that was in force before the reload, retrying",
			attrs...)
		return retry
	case upstream && kind == fault.BadCredential:
		failed()
		d.Log.Error("the upstream refuses the key: the daemon ends", attrs...)
		d.refused.CompareAndSwap(nil, &err)
		d.end()
		return retry
	case sum.Outcome == ingest.Complete:
		d.Log.Info("tick done", attrs...)
	case sum.Outcome == ingest.Exhausted:
		d.Log.Warn("tick denied", append(attrs, "limit", sum.Limit, "retry_at", sum.RetryAt)...)
	case ctx.Err() != nil:
		d.Log.Info("run ended before its chart was complete",
			append(attrs, "cause", context.Cause(ctx))...)
		return retry
	case away:
		failed()
		d.Log.Debug("run ended early, retrying", attrs...)
		return retry
	case kind == fault.BadRegion && sum.Regions[0].Known:
		d.Log.Debug("tick left out: the upstream knows no such region", attrs...)
	case kind == fault.BadRegion:
		d.Log.Error("the upstream knows no such region: remove it from the configuration; "+
			"it is retried once a week", attrs...)
	default:
		failed()
		d.Log.Error("tick failed", attrs...)
	}
	d.Metrics.sweeps.WithLabelValues(outcome).Inc()
	return done
}

// heardFrom records what a run has found out about ledger and catalogue, and reports whether it
// ended because one of them, or the upstream, is away.
func (l *lane) heardFrom(ctx context.Context, sum ingest.Summary, err error) (away bool) {
	_, upstream := fault.KindOf(err)
	switch {
	case !upstream && fromLedger(err):
		l.d.uncharged.Store(true)
		l.d.ledger.failed(err)
		return true
	case errors.Is(err, ingest.ErrCatalogue):
		l.d.catalogue.failed(err)
		return true
	case ctx.Err() == nil && len(sum.Regions) == 1 && !sum.Regions[0].Known: // both were asked
		l.d.uncharged.Store(false)
		l.d.ledger.works()
		l.d.catalogue.works()
	}
	return errors.Is(err, errDown)
}
