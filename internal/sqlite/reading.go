package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// OpenReading opens the file at path for reading only. It creates nothing, and neither the file
// nor its directory needs to be writable. Writing through either handle fails with ErrReadOnly.
// Errors are those of Open, and fs.ErrNotExist if there is no file. It uses Open to migrate a
// file that lacks migrations.
func OpenReading(ctx context.Context, path string, schema Schema) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	migrations, err := readMigrations(schema.Migrations)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, explainSystem(path, err)
	case !info.Mode().IsRegular():
		return nil, explain(path, fmt.Errorf("not a regular file: %w", ErrNotDatabase))
	}
	read, version, err := openReader(ctx, readDSN(path), schema, len(migrations))
	if isKind(err, ErrReadOnly) && !hasLog(path) {
		read, version, err = openReader(ctx, immutableDSN(path), schema, len(migrations))
	}
	if err != nil {
		return nil, explain(path, err)
	}
	if version < len(migrations) {
		if err := read.Close(); err != nil {
			return nil, explain(path, err)
		}
		return Open(ctx, path, schema)
	}
	return &DB{Write: read, Read: read, path: path, file: info, patience: BusyTimeout,
		turn: turn{log: logOf(path)}}, nil
}

// openReader opens read-only connections, and returns the number of migrations applied to the
// file.
func openReader(ctx context.Context, dsn string, schema Schema, known int) (
	*sql.DB, int, error) {
	read, err := openPool(dsn, readers)
	if err != nil {
		return nil, 0, err
	}
	version, err := checkKind(ctx, read, schema, known)
	if err != nil {
		return nil, 0, errors.Join(err, read.Close())
	}
	return read, version, nil
}

// hasLog reports whether the file has a write-ahead log, which then holds part of the data.
func hasLog(path string) bool {
	info, err := os.Stat(logOf(path))
	return !errors.Is(err, os.ErrNotExist) && (err != nil || info.Size() > 0)
}

// logOf returns the path of the write-ahead log, which is next to the file, not next to a link to
// it.
func logOf(path string) string {
	if file, err := filepath.EvalSymlinks(path); err == nil {
		path = file
	}
	return path + "-wal"
}
