package daemon

import (
	"context"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// missedTick reports ticks that did not run.
func (l *lane) missedTick(ticks int64, last schedule.Tick, why string) {
	if l.d.Missed != nil {
		l.d.Missed(l.policy().Budget.Credential, l.Lane.Lane, ticks, last.At, why)
	}
}

// reportMissed reports the ticks that came while no daemon ran: the last tick is not marked,
// although this host's catalogue shows that the lane ran before.
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
