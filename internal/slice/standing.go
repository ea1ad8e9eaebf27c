package slice

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"

	"quotabudget/internal/quota"
)

// Standing is what is left of the slice, and what waits to be recorded. Errors: quota.ErrNoSlice
// where there never was one.
func (s *Slice) Standing(ctx context.Context) (quota.SliceStanding, error) {
	if _, err := os.Stat(s.Path); s.Path == "" || errors.Is(err, fs.ErrNotExist) {
		return quota.SliceStanding{}, quota.ErrNoSlice
	}
	db, err := s.open(ctx)
	if err != nil {
		return quota.SliceStanding{}, err
	}
	defer db.Close()
	standing, now := quota.SliceStanding{Left: map[string]int64{}}, s.now()
	for _, u := range s.Units {
		standing.Left[u.Bucket] = 0
	}
	err = db.View(ctx, func(tx *sql.Tx) error {
		lines, err := s.journal(ctx, tx)
		if err != nil {
			return err
		}
		if standing.Waiting = len(lines); standing.Waiting > 0 {
			standing.Oldest = lines[0].at.wall
		}
		lease, err := s.usable(ctx, tx, now)
		if err != nil { // nothing can be spent
			return nil
		}
		parts, err := scan(ctx, tx, func(rows *sql.Rows, p *quota.Cost) error {
			return rows.Scan(&p.Bucket, &p.Units)
		}, `SELECT bucket, left FROM parts WHERE reservation = ?`, lease)
		for _, p := range parts {
			standing.Left[p.Bucket] = p.Units
		}
		return err
	})
	return standing, err
}
