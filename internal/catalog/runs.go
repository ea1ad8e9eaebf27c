package catalog

import (
	"context"
	"time"
)

// Run is what a sweep or a daemon's tick stored.
type Run struct {
	ID        string
	StartedAt time.Time // when its first page was fetched
	EndedAt   time.Time // when its last page so far was fetched
	Charts    int       // charts begun
	Complete  int       // charts completed
	Pages     int
	Videos    int
}

// Runs returns the runs that began before a moment, newest first. The zero time means all. The
// oldest may be missing if a run has more than a hundred charts for each of limit.
func (c *Catalog) Runs(ctx context.Context, before time.Time, limit int) (runs []Run, err error) {
	if before.IsZero() {
		before = lastMoment
	}
	err = c.view(ctx, func(s *txn) error {
		return s.each("runs", func(row scanner) error {
			var r Run
			var started, ended int64
			err := row.Scan(&r.ID, &started, &ended, &r.Charts, &r.Complete, &r.Pages, &r.Videos)
			r.StartedAt, r.EndedAt = micros(started), micros(ended)
			runs = append(runs, r)
			return err
		}, before.UnixMicro(), limit)
	})
	return runs, err
}
