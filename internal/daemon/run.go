package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// Outcomes of ticks that are not outcomes of a sweep.
const (
	leftOut   = "left_out"  // denied by the lane's share of the day
	paced     = "paced"     // denied by a pace: units are left for later
	overtaken = "overtaken" // too late
	overlaps  = "overlap"   // the previous run had not ended
	lost      = "lost"      // lost in a crash
	panicked  = "panicked"
)

// process runs a tick of a leased lane. It logs a panic and counts it as a run.
func (l *lane) process(ctx context.Context, tick schedule.Tick) (result result) {
	defer func() {
		if cause := recover(); cause != nil {
			l.d.Metrics.panics.Inc()
			l.ended(ctx, tick, ending{outcome: panicked})
			if l.Region != "" {
				l.d.Metrics.failures.WithLabelValues(l.Region, panicked).Inc()
			}
			l.d.Log.Error("run panicked; the next tick runs as usual", "tick", tick.ID(),
				"panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			result = done
		}
	}()
	k, err := l.Work.earlier(ctx, l)
	complete, begun := k.runs[tick.ID()]
	switch {
	case err != nil:
		return l.retry(tick, err)
	case complete:
		l.d.Log.Info("tick done: its chart is already complete", "tick", tick.ID())
		return done
	case begun: // begun and admitted by a crashed daemon, or by this one before a pause
		return l.Work.run(ctx, l, tick, true)
	}
	// A tick that resumes a chart needs the share of a whole run, like any other tick. Otherwise a
	// lane that is often interrupted would run at every tick, whatever its weight.
	runs, err := l.admitted(ctx, tick)
	if err != nil {
		return l.retry(tick, err)
	}
	if !runs {
		return done
	}
	return l.Work.run(ctx, l, tick, false)
}

// retry schedules the tick for another attempt soon, because the ledger or the catalogue failed
// before any page was bought.
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

// admitted reports whether the lane's share admits the tick while units are short. It logs the
// decision.
func (l *lane) admitted(ctx context.Context, tick schedule.Tick) (bool, error) {
	s, err := l.cfg.snapshot(ctx, l.policy(), l.Name())
	if err != nil {
		return false, err
	}
	lane := slices.IndexFunc(s.rule.Lanes, func(m share.Lane) bool { return m.Name() == l.Name() })
	decision, book, err := s.admit(ctx, lane, tick.At)
	if err != nil {
		return false, err
	}
	if decision.Short {
		shares, until := book.Shares(s.at.UnixMicro(), s.left)
		l.d.logShares(s.Policy, shares, until)
	}
	switch {
	case decision.Run:
	case s.Budget.Observe:
		l.d.Log.Info("tick would be left out: it is observed only", "tick", tick.ID(),
			"share", decision.String())
		return true, nil
	default:
		l.ended(ctx, tick, ending{outcome: leftOut})
		l.d.Log.Info("tick left out", "tick", tick.ID(), "share", decision.String())
	}
	return decision.Run, nil
}

type ending struct {
	outcome string
	code    *int // exit code of a command; nil if none was started
	units   map[string]int64
}

func (e ending) attrs() []any {
	attrs := []any{"outcome", e.outcome}
	if e.code != nil {
		attrs = append(attrs, "exit_code", *e.code)
	}
	for _, bucket := range slices.Sorted(maps.Keys(e.units)) {
		attrs = append(attrs, "units."+bucket, e.units[bucket])
	}
	return attrs
}

// recordTime limits the time for storing an ending, which no other work needs.
const recordTime = time.Second

// ended counts how a tick ended, and stores it for the list of recent runs.
func (l *lane) ended(ctx context.Context, tick schedule.Tick, e ending) {
	l.d.Metrics.ended(l, e.outcome)
	if _, away := l.d.catalogue.away(); l.cfg.Catalog == nil || away != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	err := l.cfg.Catalog.PutLaneRun(ctx, catalog.LaneRun{Lane: l.Name(), Tick: tick.ID(),
		EndedAt: time.Now(), Outcome: e.outcome, ExitCode: e.code, Units: e.units})
	if err != nil {
		l.d.Log.Debug("cannot store how the tick ended", "tick", tick.ID(), "error", err)
	}
}

func (l *lane) missedTick(ticks int64, last schedule.Tick, why string) {
	if l.d.Missed != nil {
		l.d.Missed(l.policy().Budget.Credential, l.Lane.Lane, ticks, last.At, why)
	}
}

// reportMissed reports the ticks that came while no daemon ran. There are such ticks if the last
// tick is not marked although this host's catalogue shows that the lane ran before.
func (l *lane) reportMissed(ctx context.Context) {
	last, ok := l.Prev(l.since)
	if !ok || l.cfg.Catalog == nil {
		return
	}
	runs, err := l.cfg.Catalog.LaneRuns(ctx)
	var ended time.Time
	for _, r := range runs[l.Name()] {
		if r.EndedAt.After(ended) {
			ended = r.EndedAt
		}
	}
	ticks := l.Count(ended, l.since)
	if err != nil || ended.IsZero() || ticks == 0 {
		return
	}
	if state, err := l.markOf(ctx, last); err == nil && state == quota.ClaimWon {
		l.missedTick(ticks, last, "no daemon ran")
	}
}
