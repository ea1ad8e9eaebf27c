package catalog

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// LaneRun is the result of one tick of a daemon's lane.
type LaneRun struct {
	Lane, Tick string
	EndedAt    time.Time
	Outcome    string
	ExitCode   *int // of a command; nil if none was started
	Units      map[string]int64
}

// KeptRuns is the number of runs kept per lane.
const KeptRuns = 20

// PutLaneRun stores a run. It replaces an earlier one of the same tick.
func (c *Catalog) PutLaneRun(ctx context.Context, r LaneRun) error {
	units, err := json.Marshal(r.Units)
	if err != nil {
		return err
	}
	return c.update(ctx, func(s *txn) error {
		err := s.exec("put_lane_run", r.Lane, r.Tick, r.EndedAt.UnixMicro(), r.Outcome,
			r.ExitCode, string(units))
		if err != nil {
			return err
		}
		return s.exec("drop_lane_runs", r.Lane, KeptRuns)
	})
}

// LaneRuns returns the stored runs by lane, newest first.
func (c *Catalog) LaneRuns(ctx context.Context) (map[string][]LaneRun, error) {
	runs := make(map[string][]LaneRun)
	err := c.view(ctx, func(s *txn) error {
		return s.each("lane_runs", func(row scanner) error {
			var r LaneRun
			var units []byte
			err := row.Scan(&r.Lane, &r.Tick, stamp{&r.EndedAt}, &r.Outcome, &r.ExitCode, &units)
			if err == nil {
				err = json.Unmarshal(units, &r.Units)
			}
			runs[r.Lane] = append(runs[r.Lane], r)
			return err
		})
	})
	return runs, err
}

// PutLink stores a short link to a path and returns its slug, the same one for the same path.
func (c *Catalog) PutLink(ctx context.Context, path string, at time.Time) (slug string, err error) {
	sum := sha256.Sum256([]byte(path))
	slug = strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
	return slug, c.exec(ctx, "put_link", slug, path, at.UnixMicro())
}

// Link returns the path of a slug. The error wraps ErrNotFound if there is none.
func (c *Catalog) Link(ctx context.Context, slug string) (path string, err error) {
	err = c.view(ctx, func(s *txn) error { return s.row("link", slug).Scan(&path) })
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("link %q: %w", slug, ErrNotFound)
	}
	return path, err
}
