package daemon

import (
	"context"
	"maps"
	"slices"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/schedule"
)

// ending is how a tick ended.
type ending struct {
	outcome string
	code    *int // exit code of a command; nil if none was started
	units   map[string]int64
}

// attrs returns the ending's log attributes.
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

// recordTime bounds the time for storing an ending, because no other work needs the record.
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
		l.d.Log.Debug("how the tick ended is not kept", "tick", tick.ID(), "error", err)
	}
}
