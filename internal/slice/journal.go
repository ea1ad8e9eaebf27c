package slice

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// line is a line of the journal: units of one bucket that a call took.
type line struct {
	id, bucket, labels string
	asked              string // the reservation that the ledger was asked for before
	units              int64
	at                 moment
}

// journal is what waits to be posted, oldest first.
func (s *Slice) journal(ctx context.Context, tx *sql.Tx) ([]line, error) {
	return scan(ctx, tx, func(rows *sql.Rows, l *line) error {
		var wall, up int64
		err := rows.Scan(&l.id, &l.bucket, &l.units, &wall, &l.labels, &l.at.boot, &up, &l.asked)
		l.at.wall, l.at.up = time.UnixMicro(wall), time.Duration(up)*time.Microsecond
		return err
	}, `SELECT id, bucket, units, spent_at, labels, boot, up_at, asked FROM lines
		WHERE account = ? ORDER BY spent_at, id`, s.account())
}

// batch is how many lines are posted between two looks at the file.
const batch = 100

// post writes the journal to the ledger, each line once, however often it is tried: the ledger
// knows it by its key. What the ledger has recorded of a call whose answer was lost stands.
func (s *Slice) post(ctx context.Context, db *sqlite.DB, lines []line) error {
	if len(lines) == 0 {
		return nil
	}
	ledger, err := s.Ledger.Time(ctx)
	if err != nil {
		return err
	}
	host := s.now()
	for len(lines) > 0 {
		some := lines[:min(batch, len(lines))]
		lines = lines[len(some):]
		recorded, err := s.recorded(ctx, some, ledger, host)
		done := 0
		for err == nil && done < len(some) {
			l := some[done]
			if !recorded[l.id+"."+l.bucket] && !recorded[l.asked+"."+l.bucket] {
				err = s.postLine(ctx, l, ledger.Add(-host.ago(l.at)))
			}
			if err == nil {
				done++
			}
		}
		if err := errors.Join(err, s.posted(ctx, db, some[:done])); err != nil {
			return err
		}
	}
	return nil
}

func (s *Slice) posted(ctx context.Context, db *sqlite.DB, lines []line) error {
	return db.Update(ctx, func(tx *sql.Tx) error {
		for _, l := range lines {
			_, err := tx.ExecContext(ctx, `DELETE FROM lines WHERE id = ? AND bucket = ?`, l.id,
				l.bucket)
			if err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `UPDATE turns SET until = ? WHERE account = ?`,
			s.now().wall.Add(retry/2).UnixMicro(), s.account())
		return err
	})
}

// answerIn is how long before a line the ledger may have recorded its call: it was asked first, and
// its answer was waited for.
const answerIn = 5 * time.Minute

// recorded are the lines, as ID and bucket, that the ledger has entries of: it was asked before the
// slice was, and only its answer was lost. What it then holds is given back.
func (s *Slice) recorded(ctx context.Context, lines []line, ledger time.Time, host moment) (
	map[string]bool, error) {
	found, since := make(map[string]bool), make(map[string]time.Time)
	for _, l := range lines {
		if l.asked != "" {
			_, err := s.Ledger.Release(ctx, s.Credential, l.asked)
			if err != nil && !errors.Is(err, quota.ErrNoReservation) {
				return nil, err
			}
		}
		at := ledger.Add(-host.ago(l.at) - answerIn)
		if first, ok := since[l.bucket]; !ok || at.Before(first) {
			since[l.bucket] = at
		}
	}
	for bucket, at := range since {
		for {
			page, err := s.Ledger.Entries(ctx, quota.Query{Credential: s.Credential, Bucket: bucket,
				Since: at, First: 10_000})
			if err != nil {
				return nil, err
			}
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				found[e.ID+"."+bucket] = true
			}
			at = page[len(page)-1].At
		}
	}
	return found, nil
}

// postLine adds an entry at the time at which the units were spent, by the ledger's clock. Where
// too much came after that the entry is of now, which counts it for longer.
func (s *Slice) postLine(ctx context.Context, l line, at time.Time) error {
	labels, err := quota.ParseLabels(l.labels)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	a := quota.Adjust{
		Credential: s.Credential, ID: l.id, Key: "slice-" + l.id + "-" + l.bucket, Bucket: l.bucket,
		Units: l.units, Until: at, Limits: quota.LimitsOf(l.bucket, s.Limits),
		Labels: labels.With(quota.Labels{quota.LabelSource: "journal"}),
	}
	if _, err = s.Ledger.Adjust(ctx, a); errors.Is(err, quota.ErrNoEntry) {
		a.Until = time.Time{}
		_, err = s.Ledger.Adjust(ctx, a)
	}
	if errors.Is(err, quota.ErrKeyReused) { // another process has just posted it
		return nil
	}
	return err
}
