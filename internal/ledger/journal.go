package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

//go:embed journal/*.sql
var journalSchema embed.FS

const journalID = 0x514a524e // "QJRN"

// lookInterval is how often a process looks for lines of other processes.
const lookInterval = time.Minute

// Journal is the quota.Journal of one credential, in a file on this host that the first line
// creates. Its fields are set before the first use. It is safe for concurrent use, and several
// processes may share the file.
type Journal struct {
	Path       string // path of the file
	Ledger     string // URL of the ledger; lines belong to one ledger
	Credential string

	mu   sync.Mutex
	db   *sqlite.DB
	next time.Time // time of the next look for waiting lines
}

// account returns the name of the journal's lines in the file.
func (j *Journal) account() string {
	sum := sha256.Sum256([]byte(j.Ledger + "\x00" + j.Credential))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// open opens the file at the first use.
func (j *Journal) open(ctx context.Context) (*sqlite.DB, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.db != nil && j.db.Still() == nil {
		return j.db, nil
	}
	migrations, err := fs.Sub(journalSchema, "journal")
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, j.Path, sqlite.Schema{Name: "journal",
		ApplicationID: journalID, Migrations: migrations})
	if err != nil {
		return nil, err
	}
	// Lines outlive a killed process anyway. Spend flushes those that must outlive a power cut.
	if _, err := db.Write.ExecContext(ctx, "PRAGMA synchronous = normal"); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if j.db != nil {
		j.db.Close() // the file was removed
	}
	j.db = db
	return db, nil
}

// update runs change in a transaction on the file. It creates the file if necessary.
func (j *Journal) update(ctx context.Context, change func(*sql.Tx) error) error {
	db, err := j.open(ctx)
	if err != nil {
		return err
	}
	return db.Update(ctx, change)
}

// view runs read in a read-only transaction on the file.
func (j *Journal) view(ctx context.Context, read func(*sql.Tx) error) error {
	db, err := j.open(ctx)
	if err != nil {
		return err
	}
	return db.View(ctx, read)
}

// Close closes the file. The journal can be used again.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.db == nil {
		return nil
	}
	err := j.db.Close()
	j.db = nil
	return err
}

// missing reports whether there is no file yet.
func (j *Journal) missing() bool {
	_, err := os.Stat(j.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// Due implements quota.Journal.
func (j *Journal) Due() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	if now.Before(j.next) {
		return false
	}
	j.next = now.Add(lookInterval)
	return true
}

// lookSoon makes the journal look for lines after the ledger's next response.
func (j *Journal) lookSoon() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next = time.Time{}
}

// Spend implements quota.Journal.
func (j *Journal) Spend(ctx context.Context, b quota.Booking, atMost int64) (
	left map[string]int64, earlier string, err error) {
	db, err := j.open(ctx)
	if err != nil {
		return nil, "", err
	}
	j.lookSoon()
	err = db.Update(ctx, func(tx *sql.Tx) error {
		if earlier, err = j.earlier(ctx, tx, b); err != nil || earlier != "" {
			return err
		}
		left, err = j.left(ctx, tx, b.Call.Costs, atMost)
		if err != nil || b.Call.DryRun {
			return err
		}
		return j.insert(ctx, tx, b)
	})
	switch {
	case err != nil || earlier != "":
		return map[string]int64{}, earlier, err
	case b.Call.DryRun:
		return left, "", nil
	}
	_, err = db.Write.ExecContext(ctx, "PRAGMA wal_checkpoint") // flushes to disk
	return left, "", err
}

// earlier returns the ID of a line with the same key.
func (j *Journal) earlier(ctx context.Context, tx *sql.Tx, b quota.Booking) (string, error) {
	var text string
	err := tx.QueryRowContext(ctx, `SELECT booking FROM lines WHERE account = ? AND key = ?`,
		j.account(), keyOf(b)).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	before, err := parseBooking(text, err)
	if err == nil && !slices.Equal(before.Call.Costs, b.Call.Costs) {
		err = fmt.Errorf("%w: %q", quota.ErrKeyReused, b.Call.Key)
	}
	return before.ID, err
}

// keyOf returns the key of a line; lines without one do not exclude each other.
func keyOf(b quota.Booking) sql.NullString {
	return sql.NullString{String: b.Call.Key, Valid: b.Spent && b.Call.Key != ""}
}

// left returns the units of atMost left after the costs, by bucket. Errors: quota.ErrOutageSpent.
func (j *Journal) left(ctx context.Context, tx *sql.Tx, costs []quota.Cost, atMost int64) (
	map[string]int64, error) {
	left := map[string]int64{}
	if atMost == 0 {
		return left, nil
	}
	for _, c := range costs {
		var spent int64 // units of lines that were allowed without the ledger
		err := tx.QueryRowContext(ctx, `SELECT coalesce(sum(units), 0) FROM spent
			JOIN lines USING (id) WHERE account = ? AND bucket = ?`,
			j.account(), c.Bucket).Scan(&spent)
		if err != nil {
			return nil, err
		}
		if left[c.Bucket] = atMost - spent - c.Units; left[c.Bucket] < 0 {
			return nil, fmt.Errorf("%w (%d units of %s wait in the journal, at_most is %d)",
				quota.ErrOutageSpent, spent, c.Bucket, atMost)
		}
	}
	return left, nil
}

func (j *Journal) insert(ctx context.Context, tx *sql.Tx, b quota.Booking) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO lines (id, account, key, booking) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`, b.ID, j.account(), keyOf(b), string(text))
	if !b.Spent {
		return err
	}
	for _, c := range b.Call.Costs {
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO spent (id, bucket, units) VALUES (?, ?, ?)`,
				b.ID, c.Bucket, c.Units)
		}
	}
	return err
}

// Correct implements quota.Journal.
func (j *Journal) Correct(ctx context.Context, id string, costs []quota.Cost) error {
	used := slices.DeleteFunc(slices.Clone(costs), func(c quota.Cost) bool { return c.Units == 0 })
	return j.update(ctx, func(tx *sql.Tx) error {
		b, err := line(ctx, tx, id)
		if err == nil && len(used) == 0 && b.FirstCosts != nil {
			err = fmt.Errorf("%w: it is being recorded", quota.ErrNoEntry)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM lines WHERE id = ?`, id)
		}
		if err != nil || len(used) == 0 && !b.Lost {
			return err
		}
		minimum := slices.Clone(b.FirstCosts) // Post books them in any case
		if b.Lost {
			for _, c := range b.Call.Costs { // 0 units take back what the ledger recorded
				minimum = append(minimum, quota.Cost{Bucket: c.Bucket})
			}
		}
		for _, c := range minimum {
			i := slices.IndexFunc(used, func(u quota.Cost) bool { return u.Bucket == c.Bucket })
			if i < 0 {
				used = append(used, c)
			} else {
				used[i].Units = max(used[i].Units, c.Units)
			}
		}
		b.Call.Costs = used
		return j.insert(ctx, tx, b)
	})
}

// Keep implements quota.Journal.
func (j *Journal) Keep(ctx context.Context, b quota.Booking) error {
	return j.update(ctx, func(tx *sql.Tx) error { return j.insert(ctx, tx, b) })
}

// line returns the line with an ID. Errors: quota.ErrNoEntry.
func line(ctx context.Context, tx *sql.Tx, id string) (b quota.Booking, err error) {
	var text string
	err = tx.QueryRowContext(ctx, `SELECT booking FROM lines WHERE id = ?`, id).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return b, fmt.Errorf("%w: it has been recorded meanwhile", quota.ErrNoEntry)
	}
	return parseBooking(text, err)
}

// Begin implements quota.Journal.
func (j *Journal) Begin(ctx context.Context, id string) (b quota.Booking, err error) {
	err = j.update(ctx, func(tx *sql.Tx) error {
		if b, err = line(ctx, tx, id); err != nil || b.FirstCosts != nil {
			return err
		}
		b.FirstCosts = b.Call.Costs
		text, err := json.Marshal(b)
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE lines SET booking = ? WHERE id = ?`, string(text), id)
		}
		return err
	})
	return b, err
}

// Remove implements quota.Journal.
func (j *Journal) Remove(ctx context.Context, l quota.Booking) (removed bool, err error) {
	err = j.update(ctx, func(tx *sql.Tx) error {
		now, err := line(ctx, tx, l.ID)
		if errors.Is(err, quota.ErrNoEntry) {
			removed = true // by another process
			return nil
		}
		if err != nil || now.Spent && !slices.Equal(now.Call.Costs, l.Call.Costs) {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM lines WHERE id = ?`, l.ID)
		removed = err == nil
		return err
	})
	return removed, err
}

// Lines implements quota.Journal.
func (j *Journal) Lines(ctx context.Context) (all []quota.Booking, err error) {
	if j.missing() {
		return nil, nil
	}
	err = j.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT booking FROM lines WHERE account = ? ORDER BY id`,
			j.account())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			err := rows.Scan(&text)
			b, err := parseBooking(text, err)
			if err != nil {
				return err
			}
			all = append(all, b)
		}
		return rows.Err()
	})
	return all, err
}

func parseBooking(text string, err error) (b quota.Booking, _ error) {
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return b, fmt.Errorf("a line of the journal: %w", err)
	}
	return b, nil
}
