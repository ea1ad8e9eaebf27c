package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
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

// prepare checks that the file is of the right kind, in WAL mode, writable and migrated, in this
// order.
func (db *DB) prepare(ctx context.Context, schema Schema, migrations []string) error {
	var version int
	err := wait(ctx, db.patience, func() (err error) {
		version, err = checkKind(ctx, db.Write, schema, len(migrations))
		return err
	})
	if err != nil {
		return err
	}
	if err := wait(ctx, db.patience, func() error { return setWAL(ctx, db.Write) }); err != nil {
		return err
	}
	for version < len(migrations) {
		err := db.update(ctx, func(tx *sql.Tx) (err error) {
			version, err = step(ctx, tx, schema, migrations)
			return err
		})
		if err != nil {
			return err
		}
	}
	return db.tryWriting(ctx, schema, version)
}

// tryWriting writes the current values and rolls back, so that a read-only file is noticed now
// and not at the first charge. If another process is writing, the file is writable.
func (db *DB) tryWriting(ctx context.Context, schema Schema, version int) error {
	tx, err := db.Write.BeginTx(ctx, nil)
	if err != nil {
		if isKind(err, ErrBusy) {
			return nil
		}
		return err
	}
	defer tx.Rollback()
	return stamp(ctx, tx, schema, version)
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkKind returns the number of migrations applied to the file.
func checkKind(ctx context.Context, from querier, schema Schema, known int) (
	version int, err error) {
	var id int32
	var tables int
	const header = `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id, pragma_user_version`
	if err := from.QueryRowContext(ctx, header).Scan(&id, &version, &tables); err != nil {
		return 0, err
	}
	switch {
	case id == 0 && version == 0 && tables == 0:
		return 0, fmt.Errorf("empty, as after a full disk or a copy that broke off: %w", ErrDamaged)
	case id != schema.ApplicationID:
		return 0, fmt.Errorf("a database, but no %s (application_id %#x, want %#x): %w",
			schema.Name, uint32(id), uint32(schema.ApplicationID), ErrNotDatabase)
	case version > known:
		return 0, fmt.Errorf("%s of schema %d, newer than this program's %d: %w",
			schema.Name, version, known, ErrNewer)
	}
	return version, nil
}

// setWAL turns on the write-ahead log. SQLite returns "busy" if two processes do so at once.
func setWAL(ctx context.Context, write *sql.DB) error {
	var mode string
	err := write.QueryRowContext(ctx, "PRAGMA journal_mode = wal").Scan(&mode)
	if err == nil && mode != "wal" {
		return fmt.Errorf("no write-ahead log here (journal mode %q), as on a network "+
			"file system: %w", mode, ErrReadOnly)
	}
	return err
}

// step applies the next migration inside tx, and returns the new version. It rereads the version,
// because another process may have migrated the file.
func step(ctx context.Context, tx *sql.Tx, schema Schema, migrations []string) (int, error) {
	version, err := checkKind(ctx, tx, schema, len(migrations))
	if err != nil || version == len(migrations) {
		return version, err
	}
	if _, err := tx.ExecContext(ctx, migrations[version]); err != nil {
		return 0, fmt.Errorf("migration %03d.sql: %w", version+1, err)
	}
	return version + 1, stamp(ctx, tx, schema, version+1)
}

func stamp(ctx context.Context, tx *sql.Tx, schema Schema, version int) error {
	pragmas := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d",
		schema.ApplicationID, version)
	_, err := tx.ExecContext(ctx, pragmas)
	return err
}
