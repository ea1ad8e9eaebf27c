// Package sqliteledger keeps the log in one SQLite file that several processes share.
//
// Every decision is made inside an IMMEDIATE transaction and answered after its commit is on the
// disk: a power cut loses no charge that was allowed. Callers that come while another transaction
// of the same process is under way are decided together in the next one, so that they share its one
// wait for the disk (see queue).
package sqliteledger

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"os"
	"time"

	"quotabudget/internal/ledger/queue"
	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// applicationID marks a file as a ledger: "QLDG".
const applicationID = 0x514c4447

// Ledger is a quota.Ledger in one SQLite file. Open makes it; its methods may be called from many
// goroutines.
type Ledger struct {
	// Now is the clock; nil means time.Now. It is set before the first use or never. Stamps rise
	// even when it jumps back.
	Now func() time.Time

	db      *sqlite.DB
	file    os.FileInfo // that was opened
	conn    *sql.Conn   // the one that writes
	writing statements  // prepared on conn
	reading statements
	queue   queue.Queue[work]
	kept    kept // to who leads the queue
	watch   watch
	quota.DenialCounter
}

var _ quota.Ledger = (*Ledger)(nil)

// Open opens the ledger in the file at path and creates it if need be. Errors: ErrLedgerUnusable
// when the file is no ledger, cannot be written or was written by a newer version; ErrUnreachable
// when other processes keep it locked.
func Open(ctx context.Context, path string) (*Ledger, error) {
	migrations, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		return nil, err
	}
	schema := sqlite.Schema{Name: "ledger", ApplicationID: applicationID, Migrations: migrations}
	db, err := sqlite.Open(ctx, path, schema, sqlite.Options{})
	if err != nil {
		return nil, inWords(err)
	}
	l := &Ledger{db: db}
	l.Write = l.addDenials
	if l.file, err = os.Stat(db.Path()); err == nil {
		err = l.prepare(ctx)
	}
	if err != nil {
		return nil, errors.Join(l.explain(err), l.Close())
	}
	return l, nil
}

func (l *Ledger) prepare(ctx context.Context) (err error) {
	if l.conn, err = l.db.Write.Conn(ctx); err != nil {
		return err
	}
	if l.writing, err = prepare(ctx, l.conn); err != nil {
		return err
	}
	l.reading, err = prepare(ctx, l.db.Read)
	return err
}

// Close writes the denials, turns away newcomers, waits for the answers to those that are queued, and closes the file.
func (l *Ledger) Close() error {
	l.Flush(time.Second)
	l.queue.Close()
	l.watch.close()
	err := l.writing.close()
	if l.conn != nil {
		if done := l.conn.Close(); !errors.Is(done, sql.ErrConnDone) { // closed before
			err = errors.Join(err, done)
		}
	}
	return errors.Join(err, l.db.Close())
}

// Time is the ledger's clock.
func (l *Ledger) Time(context.Context) (time.Time, error) { return l.clock().UTC(), nil }

func (l *Ledger) clock() time.Time {
	if l.Now != nil {
		return l.Now()
	}
	return time.Now()
}

// view runs read in a transaction that sees a single state of the file and waits for nobody. Should
// a reservation there be one that is to become an entry, read runs again in one that writes this.
func (l *Ledger) view(ctx context.Context, read func(*session)) error {
	s := &session{ctx: ctx, clock: l.clock, explain: l.explain, reads: true, kept: new(kept)}
	err := l.db.View(ctx, func(tx *sql.Tx) error {
		s.stmt = func(name string) *sql.Stmt { return tx.StmtContext(ctx, l.reading[name]) }
		if s.broken = l.still(); s.broken == nil {
			read(s)
		}
		return s.broken
	})
	switch {
	case errors.Is(s.broken, errLapsed):
		return l.update(ctx, func(s *session) error { read(s); return s.broken })
	case s.broken != nil:
		return s.broken
	}
	return l.explain(err)
}

// decide is update for what answers with a decision.
func (l *Ledger) decide(ctx context.Context, costs []quota.Cost,
	do func(*session) (quota.Decision, error)) (d quota.Decision, err error) {
	err = l.run(ctx, work{keeps: true, do: func(s *session) (err error) {
		d, err = do(s)
		return err
	}})
	if err != nil {
		return quota.Refused(costs, err)
	}
	return d, nil
}

func (l *Ledger) explain(err error) error { return inWords(l.db.Explain(err)) }

// stamp is a stored time as a time.Time.
func stamp(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
