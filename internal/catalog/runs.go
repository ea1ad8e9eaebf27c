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
		runs, err = list(s, "runs", func(row scanner) (r Run, err error) {
			err = row.Scan(&r.ID, stamp{&r.StartedAt}, stamp{&r.EndedAt}, &r.Charts, &r.Complete,
				&r.Pages, &r.Videos)
			return r, err
		}, before.UnixMicro(), limit)
		return err
	})
	return runs, err
}
