package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"strconv"
	"sync"

	"quotabudget/internal/quota"
)

// Entries implements ledger.Store.
func (s *Store) Entries(ctx context.Context, q quota.Query) (entries []quota.LogEntry, err error) {
	statement, most := "entry_page", cmp.Or(q.Limit, q.First, -1)
	switch {
	case q.Notes:
		statement, most = "note_list", cmp.Or(q.Limit, -1)
	case q.Limit > 0:
		statement = "entry_list"
	}
	err = s.view(ctx, func(t *tx) error {
		after, until := q.Span()
		t.each(statement, []any{q.Credential, q.Bucket, after, until, most}, scanEntries(&entries))
		return t.broken
	})
	return entries, err
}

// Sums implements ledger.Store.
func (s *Store) Sums(ctx context.Context, q quota.SumQuery) (sums []quota.Sum, err error) {
	err = s.view(ctx, func(t *tx) (err error) {
		var tally quota.Tally
		t.sums(q, &tally)
		if sums, err = tally.Sums(q); t.broken != nil {
			err = t.broken
		}
		return err
	})
	return sums, err
}

// sums reads the sums of the grains from a time on.
func (t *tx) sums(q quota.SumQuery, into *quota.Tally) {
	since, _ := quota.Query{Since: q.Since}.Span()
	t.each("sum_list", []any{q.Credential, q.Bucket, since}, func(row *sql.Rows) error {
		var at, units, charges int64
		var line string
		err := row.Scan(&at, &line, &units, &charges)
		into.Add(at, line, units, charges)
		return err
	})
}

// BucketsOf implements ledger.Store.
func (s *Store) BucketsOf(ctx context.Context, credential string) (all []quota.BucketTotal,
	err error) {
	err = s.view(ctx, func(t *tx) error {
		t.each("bucket_list", []any{credential}, func(row *sql.Rows) error {
			var b quota.BucketTotal
			var last int64
			err := row.Scan(&b.Bucket, &b.Units, &b.Noted, &last)
			b.LastAt = quota.StampTime(last)
			all = append(all, b)
			return err
		})
		return t.broken
	})
	return all, err
}

// watch is a connection that only checks whether other connections have written, which SQLite
// counts per connection. Mark opens it at the first call.
type watch struct {
	mu   sync.Mutex
	conn *sql.Conn
}

// Mark implements ledger.Store. Any change of the file counts as one of the buckets.
func (s *Store) Mark(ctx context.Context, _ string, _ []string) (string, error) {
	if err := s.still(); err != nil {
		return "", err
	}
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	var err error
	if s.watch.conn == nil {
		if s.watch.conn, err = s.db.Read.Conn(ctx); err != nil {
			return "", s.explain(err)
		}
	}
	var version int64
	err = s.watch.conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version)
	return strconv.FormatInt(version, 10), s.explain(err)
}

func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		w.conn.Close() // the connection only reads, so an error loses nothing
	}
}
