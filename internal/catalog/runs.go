package catalog

import (
	"context"
	"time"
)

// Run is what a sweep or a daemon's tick left in the catalogue.
type Run struct {
	ID        string
	StartedAt time.Time // its first page was fetched
	EndedAt   time.Time // its last page so far was fetched
	Charts    int       // begun
	Complete  int       // of these
	Pages     int
	Videos    int
}

// Runs returns the runs that began before a moment, newest first; a zero one means all. Of a run
// with more than a hundred charts for each of limit the oldest may be left out.
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
