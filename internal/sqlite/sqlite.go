// Package sqlite opens the project's SQLite files.
//
// A file has one kind (a ledger, a catalogue), marked by its application_id, and numbered
// migrations, counted by its user_version. It is opened twice: one connection that writes,
// several that only read. Several processes may have the same file open. A writer waits for
// another writer up to the busy timeout; readers do not wait.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	driver "modernc.org/sqlite"
)

// BusyTimeout is how long a writer waits for another process's transaction.
const BusyTimeout = 10 * time.Second

const readers = 4 // connections of DB.Read

// Schema describes one kind of file.
type Schema struct {
	// Name is the kind in words ("ledger"), for errors.
	Name string
	// ApplicationID marks files of this kind. It is not 0.
	ApplicationID int32
	// Migrations holds 001.sql, 002.sql and so on, without gaps. A released migration is never
	// edited.
	Migrations fs.FS
}

// DB is an open file.
type DB struct {
	// Write has a single connection, whose transactions are IMMEDIATE: they hold the file's write
	// lock from the start. It fails at once if another process has the lock; see Lock. During a
	// transaction use its *sql.Tx: another call on the handle would wait for ever.
	Write *sql.DB
	// Read has read-only connections, which see the last commit. After OpenReading it is also
	// Write.
	Read *sql.DB

	path     string
	file     os.FileInfo // as it was when opened
	patience time.Duration
	turn     turn
}

// Open opens the file at path, and applies the missing migrations of schema. It creates the file
// and its directories (mode 0700) if necessary. The file has mode 0600, or 0660 in a directory
// that is setgid and writable by its group. Errors name the path and wrap ErrNotDatabase,
// ErrReadOnly, ErrNewer, ErrDamaged, ErrFull or ErrBusy if one fits. A refused file is not
// changed.
func Open(ctx context.Context, path string, schema Schema) (*DB, error) {
	return open(ctx, path, schema, BusyTimeout)
}

func open(ctx context.Context, path string, schema Schema, patience time.Duration) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	migrations, err := readMigrations(schema.Migrations)
	if err != nil {
		return nil, err
	}
	if err := create(ctx, path, schema, migrations); err != nil {
		return nil, err
	}
	db := &DB{path: path, patience: patience, turn: turn{log: logOf(path)}}
	if db.file, err = os.Stat(path); err != nil {
		return nil, explainSystem(path, err)
	}
	if db.Write, err = openPool(writeDSN(path), 1); err != nil {
		return nil, explain(path, err)
	}
	if err := db.prepare(ctx, schema, migrations); err != nil {
		return nil, errors.Join(explain(path, err), db.Write.Close())
	}
	if db.Read, err = openPool(readDSN(path), readers); err != nil {
		return nil, errors.Join(explain(path, err), db.Write.Close())
	}
	return db, nil
}

// Path returns the absolute path of the file.
func (db *DB) Path() string { return db.path }

// Still returns ErrGone if the path no longer names the file that was opened: a process that
// opens it now does not see what is written here. Call it in a transaction, so that the answer
// holds from the transaction's start.
func (db *DB) Still() error {
	now, err := os.Stat(db.path)
	if err == nil && os.SameFile(db.file, now) {
		return nil
	}
	return explain(db.path, ErrGone)
}

// Close closes both handles, readers first, so that the last writer can fold its log into the
// file.
func (db *DB) Close() error {
	return errors.Join(db.Read.Close(), db.Write.Close())
}

// Update runs fn in one transaction that holds the write lock from its start, and commits if fn
// returns nil. It explains errors of SQLite, and returns those of fn unchanged.
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

// Explain adds the path, and a sentinel of this package if one fits, to an error of SQLite. It
// returns other errors and nil unchanged.
func (db *DB) Explain(err error) error { return explain(db.path, err) }

func (db *DB) update(ctx context.Context, fn func(*sql.Tx) error) error {
	conn, err := db.Write.Conn(ctx) // waits for this process's own transactions without a timeout
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
	defer tx.Rollback() // does nothing after Commit
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// openPool keeps all its connections open, because opening one costs more than most statements.
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
