package daemon

import (
	"context"
	"strings"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/ingest"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// resume makes a chart that an earlier tick of the lane has left half, and that is still fresh,
// this tick's, so that its sweep buys the missing pages only. It is called when the tick is to run:
// a chart that is of a tick says that the tick was decided.
//
// The earlier tick must be done, be it by a denial. One that was lost in a crash is still to be run
// by whoever takes it over, and keeps its chart.
func (l *lane) resume(ctx context.Context, tick schedule.Tick) error {
	cat := l.work.Sweep.Catalog
	chart, ok, err := cat.Resume(context.WithoutCancel(ctx), catalog.ChartKey{Region: l.Region}, time.Now().Add(-ingest.DefaultResume))
	if err != nil || !ok {
		return err
	}
	earlier, ok := l.parse(chart.Run)
	if !ok || !earlier.Scheduled.Before(tick.Scheduled) {
		return nil
	}
	switch won, err := l.claim(ctx, earlier); {
	case err != nil:
		return err
	case won == quota.ClaimWon:
		l.finish(ctx, earlier, false)
		return nil
	case won == quota.ClaimHeld:
		return nil
	}
	passed, err := cat.PassOn(context.WithoutCancel(ctx), chart.ID, chart.Run, tick.ID())
	if passed {
		l.Log.Info("chart of an earlier tick goes on", "tick", tick.ID(), "earlier", earlier.ID(), "pages", chart.Pages)
	}
	return err
}

// parse reads the ID of a tick of the lane, which may be one of an earlier schedule.
func (l *lane) parse(id string) (schedule.Tick, bool) {
	scheduled, err := time.Parse(time.RFC3339, strings.TrimPrefix(id, l.Name()+"/"))
	return schedule.Tick{Job: l.Job, Region: l.Region, Scheduled: scheduled, At: scheduled.Add(l.Offset)}, err == nil
}
