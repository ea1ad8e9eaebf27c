// Package sqlite is how this project opens SQLite files.
//
// A file has one kind (a ledger, a catalogue), told by its application_id, and numbered migrations,
// counted by its user_version. It is opened twice: one connection that writes, several that can
// only read. Several processes may have the same file open; a writer waits for another writer up to
// the busy timeout, readers wait for nobody.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	driver "modernc.org/sqlite"
)

// DefaultBusyTimeout is that of the zero Options.
const DefaultBusyTimeout = 10 * time.Second

const readers = 4 // connections of DB.Read

// Schema is one kind of file.
type Schema struct {
	// Name is the kind in words ("ledger"), for errors.
	Name string
	// ApplicationID marks files of this kind. It is not 0.
	ApplicationID int32
	// Migrations holds 001.sql, 002.sql and so on, without gaps. A migration that was released is
	// never edited.
	Migrations fs.FS
}

// Options are settings of one Open.
type Options struct {
	// BusyTimeout is how long a writer waits for another process's transaction. 0 means
	// DefaultBusyTimeout.
	BusyTimeout time.Duration
}

// DB is an open file.
type DB struct {
	// Write has a single connection, whose transactions are IMMEDIATE: they hold the file's write
	// lock from the start. It answers at once when another process has the lock; see Lock. To use
	// the handle while a transaction of its own is open waits for ever; use the *sql.Tx.
	Write *sql.DB
	// Read has connections that cannot write. What they read is what was last committed. After
	// OpenReading it is Write too.
	Read *sql.DB

	path     string
	file     os.FileInfo // that was opened
	patience time.Duration
	turns    *turns
}

// Open opens the file at path, creates it and its directories (mode 0700) if need be, and brings it
// up to the last migration of schema. The file has mode 0600, or 0660 in a directory that is setgid
// and writable by its group. Errors name the path and wrap ErrNotDatabase, ErrReadOnly, ErrNewer,
// ErrDamaged, ErrFull or ErrBusy where one fits; a file that is refused is left as it was.
func Open(ctx context.Context, path string, schema Schema, opts Options) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	migrations, err := readMigrations(schema.Migrations)
	if err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, err
	}
	db := &DB{path: path, patience: opts.busyTimeout(), turns: turnsOf(path)}
	if db.file, err = os.Stat(path); err != nil {
		return nil, explainSystem(path, err)
	}
	if db.Write, err = openPool(writeDSN(path), 1); err != nil {
		return nil, explain(path, err)
	}
	if err := db.prepare(ctx, schema, migrations); err != nil {
		return nil, errors.Join(explain(path, err), db.Write.Close())
	}
	if db.Read, err = openPool(readDSN(path, opts), readers); err != nil {
		return nil, errors.Join(explain(path, err), db.Write.Close())
	}
	return db, nil
}

// Path returns the absolute path of the file.
func (db *DB) Path() string { return db.path }

// Still reports ErrGone when the path does not name the file any more that was opened: who opens it
// now does not see what is written here. To be asked in a transaction, so that what was there at
// its beginning is known.
func (db *DB) Still() error {
	now, err := os.Stat(db.path)
	if err == nil && os.SameFile(db.file, now) {
		return nil
	}
	return explain(db.path, ErrGone)
}

// Close closes both handles, readers first, so that the last writer can fold its log into the file.
func (db *DB) Close() error {
	db.turns.rest()
	return errors.Join(db.Read.Close(), db.Write.Close())
}

// Update runs fn in one transaction that holds the write lock from its start, and commits if fn
// returns nil. Errors of SQLite come back explained; those of fn pass through.
func (db *DB) Update(ctx context.Context, fn func(*sql.Tx) error) error {
	return db.Explain(db.update(ctx, fn))
}

// View runs fn in one transaction that sees a single state of the file.
func (db *DB) View(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := db.Read.BeginTx(ctx, nil)
	if err != nil {
		return db.Explain(err)
	}
	return db.Explain(inTx(tx, fn))
}

// Explain adds the path and, where one fits, a sentinel of this package to an error of SQLite;
// other errors and nil come back as they are.
func (db *DB) Explain(err error) error { return explain(db.path, err) }

func (db *DB) update(ctx context.Context, fn func(*sql.Tx) error) error {
	conn, err := db.Write.Conn(ctx) // however long this process's own transactions take
	if err != nil {
		return err
	}
	defer conn.Close()
	var tx *sql.Tx
	end, err := db.Lock(ctx, func() (err error) {
		tx, err = conn.BeginTx(ctx, nil)
		return err
	})
	if err != nil {
		return err
	}
	defer end()
	return inTx(tx, fn)
}

func inTx(tx *sql.Tx, fn func(*sql.Tx) error) error {
	defer tx.Rollback() // after Commit it does nothing
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// openPool keeps every connection it has made: opening one costs more than most statements.
func openPool(dsn string, connections int) (*sql.DB, error) {
	connector, err := driver.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return pool, nil
}

func (o Options) busyTimeout() time.Duration {
	return cmp.Or(o.BusyTimeout, DefaultBusyTimeout)
}
