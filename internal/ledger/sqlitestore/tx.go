package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"quotabudget/internal/quota"
)

// tx is one transaction, with the buckets that it has read. After an error it runs no further
// statements and commits nothing.
type tx struct {
	s    *Store
	ctx  context.Context
	stmt func(name string) *sql.Stmt

	buckets map[name]*bucket
	broken  error // the first error
}

// now returns the store's time in Unix µs.
func (t *tx) now() int64 { return t.s.Now().UnixMicro() }

// name names a bucket.
type name struct{ credential, bucket string }

func (s *Store) newTx(ctx context.Context, stmt func(name string) *sql.Stmt) *tx {
	return &tx{s: s, ctx: ctx, stmt: stmt, buckets: make(map[name]*bucket)}
}

// find reads the first row that a statement returns; false if there is none.
func (t *tx) find(statement string, args []any, into ...any) bool {
	if t.broken != nil {
		return false
	}
	err := t.stmt(statement).QueryRowContext(t.ctx, args...).Scan(into...)
	if !errors.Is(err, sql.ErrNoRows) {
		t.failIn(statement, err)
	}
	return err == nil
}

// each reads all rows that a statement returns; row scans one.
func (t *tx) each(statement string, args []any, row func(*sql.Rows) error) {
	if t.broken != nil {
		return
	}
	rows, err := t.stmt(statement).QueryContext(t.ctx, args...)
	if err != nil {
		t.failIn(statement, err)
		return
	}
	defer rows.Close()
	for err == nil && rows.Next() {
		err = row(rows)
	}
	if err == nil {
		err = rows.Err()
	}
	t.failIn(statement, err)
}

// change runs a statement that writes.
func (t *tx) change(statement string, args ...any) {
	if t.broken == nil {
		_, err := t.stmt(statement).ExecContext(t.ctx, args...)
		t.failIn(statement, err)
	}
}

func (t *tx) failIn(statement string, err error) {
	if err != nil {
		t.fail(t.s.explain(fmt.Errorf("%s: %w", statement, err)))
	}
}

// fail keeps the first error.
func (t *tx) fail(err error) {
	if t.broken == nil {
		t.broken = err
	}
}

// bucket is one bucket as read in this transaction. It is the quota.Log of its entries.
type bucket struct {
	quota.Bucket
	t        *tx
	known    bool  // the bucket has a row in buckets
	recorded int64 // from the row: see quota.Bucket
	digest   int64 // from the row
	dirty    bool  // the row must be written
	trimmed  bool  // old entries were removed
	err      error // the first problem found in it
	sums     quota.Tally
	last     windowTotal
}

// windowTotal is the total before every window that starts later than after and not later than
// until. TotalAt caches the last one: when thousands of holds lapse, the rule reads the window at
// each lapse, and most of these windows share a total.
type windowTotal struct{ after, until, total int64 }

// account returns what the scope names. Errors: quota.DamagedError.
func (t *tx) account(scope quota.Scope) (*quota.Account, error) {
	a := &quota.Account{Credential: scope.Credential, Now: t.now()}
	for _, bucketName := range scope.Buckets {
		b := t.bucket(scope.Credential, bucketName)
		if b.err != nil {
			return nil, b.err
		}
		b.Lapsed = nil
		if at := int64(0); scope.Reservation != "" && t.find("lapsed_find",
			[]any{scope.Credential, bucketName, scope.Reservation}, &at) {
			b.Lapsed = &quota.Hold{ID: scope.Reservation, LapsedAt: at}
		}
		a.Buckets = append(a.Buckets, &b.Bucket)
	}
	if scope.Answer != "" {
		answer := quota.Answer{Name: scope.Answer}
		if t.find("answer_find", []any{scope.Credential, scope.Answer}, &answer.Request,
			&answer.Decision, &answer.Expires) {
			a.Answer = &answer
		}
	}
	return a, t.broken
}

// bucket returns a bucket, read once in a transaction.
func (t *tx) bucket(credential, bucketName string) *bucket {
	if b := t.buckets[name{credential, bucketName}]; b != nil {
		return b
	}
	b := &bucket{t: t}
	b.Credential, b.Name, b.Log = credential, bucketName, b
	b.read()
	_, some, err := b.Newest()
	switch {
	case b.err != nil:
	case err != nil:
		b.err = err
	case !b.known && (some || len(b.Holds) > 0):
		b.err = b.Damage("its row in buckets is missing")
	case b.known && (b.digest != b.Digest() || b.recorded != b.Recorded()):
		b.err = b.Damage("its reservations or its row in buckets are not what was written")
	}
	if t.broken == nil {
		t.buckets[name{credential, bucketName}] = b
	}
	return b
}

// read reads the row and the holds of the bucket.
func (b *bucket) read() {
	var levels, others string
	s := &b.State
	b.known = b.t.find("bucket_find", b.args(), &s.SuspendedUntil, &s.SuspendedSince, &s.SuspendedBy,
		&s.Reason, &s.ResetAt, &s.Keep, &s.Floor,
		&levels, &others, &b.recorded, &b.digest)
	if b.known {
		err := errors.Join(json.Unmarshal([]byte(levels), &s.Levels),
			json.Unmarshal([]byte(others), &s.Others))
		if err != nil {
			b.err = b.Damage("its row in buckets cannot be read")
		}
	}
	b.t.each("hold_list", b.args(), func(row *sql.Rows) error {
		var h quota.Hold
		var manual int64
		err := row.Scan(&h.ID, &h.Units, &h.Most, &h.Drawn, &h.Created, &h.Expires, &h.Lapse,
			&h.Labels, &manual, &h.Note)
		h.Manual = manual != 0
		b.Holds = append(b.Holds, h)
		return err
	})
}

// args returns the arguments of a statement on the bucket.
func (b *bucket) args(more ...any) []any { return append([]any{b.Credential, b.Name}, more...) }

// Newest implements quota.Log.
func (b *bucket) Newest() (quota.LogEntry, bool, error) {
	var two []quota.LogEntry
	b.t.each("entry_newest", b.args(), scanEntries(&two))
	switch {
	case len(two) == 0:
		return quota.LogEntry{}, false, b.t.broken
	case len(two) == 2 && two[0].Total-two[0].Units != two[1].Total:
		return two[0], true, b.Damage(quota.Unsteady)
	}
	return two[0], true, b.t.broken
}

func scanEntries(into *[]quota.LogEntry) func(*sql.Rows) error {
	return func(row *sql.Rows) error {
		var e quota.LogEntry
		err := row.Scan(&e.At, &e.ID, &e.Units, &e.Total, &e.Labels)
		*into = append(*into, e)
		return err
	}
}

// TotalAt implements quota.Log.
func (b *bucket) TotalAt(start int64) (int64, error) {
	if start > b.last.after && start <= b.last.until {
		return b.last.total, b.t.broken
	}
	var next []quota.LogEntry
	b.t.each("entry_from", b.args(start), func(row *sql.Rows) error {
		var e quota.LogEntry
		err := row.Scan(&e.At, &e.Units, &e.Total)
		next = append(next, e)
		return err
	})
	if len(next) == 0 {
		newest, _, err := b.Newest()
		return newest.Total, err
	}
	if err := b.Steady(next); err != nil {
		return 0, err
	}
	b.last = windowTotal{start - 1, next[0].At, next[0].Total - next[0].Units}
	return b.last.total, b.t.broken
}

// Reached implements quota.Log. Totals rise with the stamps, so it searches by halving the time.
func (b *bucket) Reached(total int64) (int64, error) {
	newest, _, err := b.Newest()
	if err != nil || newest.Total < total {
		return 0, errors.Join(err, b.Damage(quota.Unsteady))
	}
	var low, units, first int64
	b.t.find("entry_from", b.args(-quota.Never), &low, &units, &first)
	high := newest.At
	for low < high && b.t.broken == nil {
		mid := low + (high-low)/2
		var at, reached int64
		if b.t.find("entry_before", b.args(mid+1), &at, &reached) && reached >= total {
			high = at
		} else {
			low = mid + 1
		}
	}
	return high, b.t.broken
}

// Since implements quota.Log.
func (b *bucket) Since(after int64, limit int) (entries []quota.LogEntry, err error) {
	b.t.each("entry_page", b.args(after, quota.Never, limit), scanEntries(&entries))
	return entries, b.t.broken
}
