package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"quotabudget/internal/quota"
)

// Note implements quota.Journal.
func (j *Journal) Note(ctx context.Context, n quota.Note) error {
	return j.update(ctx, func(tx *sql.Tx) error { return j.note(ctx, tx, n) })
}

// note writes a note, and deletes the expired notes of all accounts.
func (j *Journal) note(ctx context.Context, tx *sql.Tx, n quota.Note) error {
	now, dueAt := time.Now().Unix(), int64(0)
	if !n.Due.IsZero() {
		dueAt = n.Due.Unix()
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM notes WHERE until < ?`, now)
	if err == nil {
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO notes
			(account, name, text, made, due, until) VALUES (?, ?, ?, ?, ?, ?)`,
			j.account(), n.Name, n.Text, now, dueAt, n.Until.Unix())
	}
	return err
}

// Noted implements quota.Journal.
func (j *Journal) Noted(ctx context.Context, name string) (n quota.Note, err error) {
	if j.missing() {
		return n, quota.ErrNoNote
	}
	err = j.view(ctx, func(tx *sql.Tx) (err error) {
		n, err = scanNote(tx.QueryRowContext(ctx, `SELECT name, text, due, until FROM notes
			WHERE account = ? AND name = ?`, j.account(), name))
		return err
	})
	return n, err
}

// DueNote implements quota.Journal. A note is due again after a quarter of its age, but at least
// after 5 s and at most after 15 min.
func (j *Journal) DueNote(ctx context.Context, now time.Time) (n quota.Note, err error) {
	if j.missing() {
		return n, quota.ErrNoNote
	}
	err = j.update(ctx, func(tx *sql.Tx) (err error) {
		n, err = scanNote(tx.QueryRowContext(ctx, `
			UPDATE notes SET due = ?1 + max(5, min(900, (?1 - made) / 4))
			WHERE account = ?2 AND name = (SELECT name FROM notes
				WHERE account = ?2 AND due BETWEEN 1 AND ?1 ORDER BY due LIMIT 1)
			RETURNING name, text, due, until`, now.Unix(), j.account()))
		return err
	})
	return n, err
}

// Resolve implements quota.Journal.
func (j *Journal) Resolve(ctx context.Context, name string, l *quota.Booking,
	next *quota.Note) error {
	return j.update(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `DELETE FROM notes WHERE account = ? AND name = ?`,
			j.account(), name)
		if err != nil {
			return err
		}
		switch n, err := done.RowsAffected(); {
		case err != nil:
			return err
		case n == 0:
			return quota.ErrNoNote
		case next != nil:
			return j.note(ctx, tx, *next)
		}
		return j.insert(ctx, tx, *l)
	})
}

func scanNote(row *sql.Row) (n quota.Note, err error) {
	var dueAt, until int64
	err = row.Scan(&n.Name, &n.Text, &dueAt, &until)
	if errors.Is(err, sql.ErrNoRows) {
		return n, quota.ErrNoNote
	}
	if err != nil {
		return n, fmt.Errorf("a note of the journal: %w", err)
	}
	n.Due, n.Until = time.Unix(dueAt, 0), time.Unix(until, 0)
	return n, nil
}
