package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// readMigrations returns the texts of 001.sql, 002.sql, …, in order.
func readMigrations(files fs.FS) ([]string, error) {
	names, err := fs.Glob(files, "*.sql") // sorted
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(names))
	for i, name := range names {
		if want := fmt.Sprintf("%03d.sql", i+1); name != want {
			return nil, fmt.Errorf("migration %s: want %s next", name, want)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		texts[i] = string(text)
	}
	return texts, nil
}

// prepare makes sure that the file is of the kind, in WAL mode, writable and up to date, in this
// order.
func prepare(ctx context.Context, write *sql.DB, schema Schema, migrations []string,
	opts Options) error {
	if _, err := checkKind(ctx, write, schema, len(migrations)); err != nil {
		return err
	}
	if err := setWAL(ctx, write, opts.busyTimeout()); err != nil {
		return err
	}
	for {
		err := inTx(ctx, write, func(tx *sql.Tx) error { return step(ctx, tx, schema, migrations) })
		switch {
		case errors.Is(err, errUpToDate):
			return nil
		case err != nil:
			return err
		}
	}
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkKind returns the number of migrations the file has had.
func checkKind(ctx context.Context, from querier, schema Schema, known int) (
	version int, err error) {
	var id int32
	var tables int
	const header = `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`
	if err := from.QueryRowContext(ctx, header).Scan(&id, &version, &tables); err != nil {
		return 0, err
	}
	empty := id == 0 && version == 0 && tables == 0
	switch {
	case id != schema.ApplicationID && !empty:
		return 0, fmt.Errorf("a database, but no %s (application_id %#x, want %#x): %w",
			schema.Name, uint32(id), uint32(schema.ApplicationID), ErrNotDatabase)
	case version > known:
		return 0, fmt.Errorf("%s of schema %d, where this program knows %d: %w",
			schema.Name, version, known, ErrNewer)
	}
	return version, nil
}

// setWAL turns on the write-ahead log. SQLite answers "busy" without waiting when two processes
// turn it on at once, so the waiting is done here.
func setWAL(ctx context.Context, write *sql.DB, patience time.Duration) error {
	const pause = 5 * time.Millisecond
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrBusy)
	defer cancel()
	for {
		var mode string
		err := write.QueryRowContext(ctx, "PRAGMA journal_mode = wal").Scan(&mode)
		switch {
		case err == nil && mode == "wal":
			return nil
		case err == nil:
			return fmt.Errorf("no write-ahead log here (journal mode %q), as on a network "+
				"file system: %w", mode, ErrReadOnly)
		case !isBusy(err) && ctx.Err() == nil:
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// errUpToDate ends the steps; the transaction that found it out is undone.
var errUpToDate = errors.New("up to date")

// step applies the next migration inside tx; it looks at the version again, since another process
// may have been faster. When there is none left it writes what is there already, to be undone: so a
// file that cannot be written is noticed now and not at the first charge.
func step(ctx context.Context, tx *sql.Tx, schema Schema, migrations []string) error {
	version, err := checkKind(ctx, tx, schema, len(migrations))
	if err != nil {
		return err
	}
	if version == len(migrations) {
		if err := stamp(ctx, tx, schema, version); err != nil {
			return err
		}
		return errUpToDate
	}
	if _, err := tx.ExecContext(ctx, migrations[version]); err != nil {
		return fmt.Errorf("migration %03d.sql: %w", version+1, err)
	}
	return stamp(ctx, tx, schema, version+1)
}

func stamp(ctx context.Context, tx *sql.Tx, schema Schema, version int) error {
	pragmas := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d",
		schema.ApplicationID, version)
	_, err := tx.ExecContext(ctx, pragmas)
	return err
}
