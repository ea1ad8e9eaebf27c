// Package sqlitestore keeps the logs of a ledger in one SQLite file that several processes share.
//
// Every change is an IMMEDIATE transaction, answered once its commit is on the disk, so a power cut
// loses no allowed charge. Callers that arrive while another transaction of the process is open
// share the next one, and wait only once for the disk (see queue).
package sqlitestore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// applicationID marks a file as a ledger: "QLDG".
const applicationID = 0x514c4447

// Store is a ledger.Store in one SQLite file. Open creates it. It is safe for concurrent use.
type Store struct {
	// Now returns the current time. The caller may replace it before the first use of the store.
	Now func() time.Time

	db      *sqlite.DB
	conn    *sql.Conn  // the connection that writes
	writing statements // prepared on conn
	reading statements
	queue   quota.Queue[work]
	watch   watch
}

// Open opens the ledger in the file at path, and creates the file if there is none. Errors:
// ErrLedgerUnusable if the file is not a ledger, cannot be written or was written by a newer
// version; ErrUnreachable if other processes keep it locked.
func Open(ctx context.Context, path string) (*Store, error) {
	migrations, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		return nil, err
	}
	schema := sqlite.Schema{Name: "ledger", ApplicationID: applicationID, Migrations: migrations}
	db, err := sqlite.Open(ctx, path, schema)
	if err != nil {
		return nil, inWords(err)
	}
	s := &Store{Now: time.Now, db: db}
	if s.conn, err = db.Write.Conn(ctx); err == nil {
		s.writing, err = prepare(ctx, s.conn)
	}
	if err == nil {
		s.reading, err = prepare(ctx, db.Read)
	}
	if err != nil {
		return nil, errors.Join(s.explain(err), s.Close())
	}
	return s, nil
}

// Close refuses new operations, waits for the queued ones, and closes the file.
func (s *Store) Close() error {
	s.queue.Close()
	s.watch.close()
	err := s.writing.close()
	if s.conn != nil {
		if done := s.conn.Close(); !errors.Is(done, sql.ErrConnDone) { // not closed already
			err = errors.Join(err, done)
		}
	}
	return errors.Join(err, s.db.Close())
}

// Time implements ledger.Store.
func (s *Store) Time(context.Context) (time.Time, error) { return s.Now().UTC(), nil }

func (s *Store) explain(err error) error { return inWords(s.db.Explain(err)) }

// View implements ledger.Store. It does not wait for writers.
func (s *Store) View(ctx context.Context, scope quota.Scope,
	read func(*quota.Account) error) error {
	return s.view(ctx, func(t *tx) error {
		a, err := t.account(scope)
		if err != nil {
			return err
		}
		return read(a)
	})
}

// view calls read with a transaction on one state of the file.
func (s *Store) view(ctx context.Context, read func(*tx) error) error {
	var failed error
	err := s.db.View(ctx, func(in *sql.Tx) error {
		t := s.newTx(ctx, func(name string) *sql.Stmt { return in.StmtContext(ctx, s.reading[name]) })
		if failed = s.still(); failed == nil {
			failed = read(t)
		}
		return failed
	})
	if failed != nil {
		return failed
	}
	return s.explain(err)
}

// still checks that the path still names the open file, so that a process that opens the path now
// sees the decisions made here.
func (s *Store) still() error { return inWords(s.db.Still()) }
