package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// create creates a file of the kind at path unless one exists. The new file is complete before it
// gets its name; an empty file was cut short, and is never treated as new.
func create(ctx context.Context, path string, schema Schema, migrations []string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return explain(path, fmt.Errorf("not a regular file: %w", ErrNotDatabase))
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return explainSystem(path, err)
	case orphaned(path):
		return explain(path, fmt.Errorf("no such file, but %s, its write-ahead log, is there: %w",
			filepath.Base(logOf(path)), ErrDamaged))
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return explainSystem(path, err)
	}
	pattern := "." + filepath.Base(path) + ".*.new"
	removeOld(filepath.Join(dir, pattern+"*"))
	file, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return explainSystem(path, err)
	}
	defer func() { // on a full disk, SQLite leaves its journals behind
		for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
			os.Remove(file.Name() + suffix)
		}
	}()
	if shared(dir) {
		err = file.Chmod(0o660)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return explainSystem(path, err)
	}
	if err := fill(ctx, file.Name(), schema, migrations); err != nil {
		return explain(path, err)
	}
	err = os.Link(file.Name(), path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // some file systems have no hard links
		err = rename(file.Name(), path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return explainSystem(path, err)
	}
	return nil
}

// rename renames a file without replacing another one. A process that opens the file in between
// finds an empty file, which is an error.
func rename(old, path string) error {
	claim, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := claim.Close(); err != nil {
		return err
	}
	if err := os.Rename(old, path); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// creation is longer than the creation of a file takes.
const creation = time.Hour

// removeOld removes the temporary files of processes killed during creation. It ignores errors,
// because these files are harmless.
func removeOld(pattern string) {
	left, _ := filepath.Glob(pattern)
	for _, name := range left {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > creation {
			os.Remove(name)
		}
	}
}

// orphaned reports whether a write-ahead log is at path without its file. SQLite would replay it
// into a new file, which then has some pages of the old one.
func orphaned(path string) bool {
	if !hasLog(path) {
		return false
	}
	_, err := os.Stat(path) // another process may have created both just now
	return errors.Is(err, fs.ErrNotExist)
}

// fill writes the schema into an empty file, which no other process uses yet, and migrates it. It
// sets WAL mode last, so that the write-ahead log is empty: SQLite may be unable to copy a log into
// the file when it closes it, because the disk is full or ctx has ended.
func fill(ctx context.Context, path string, schema Schema, migrations []string) error {
	write, err := openPool(writeDSN(path), 1)
	if err != nil {
		return err
	}
	defer write.Close()
	tx, err := write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	err = inTx(tx, func(tx *sql.Tx) error {
		if err := stamp(ctx, tx, schema, 0); err != nil {
			return err
		}
		for version := 0; version < len(migrations); {
			if version, err = step(ctx, tx, schema, migrations); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return setWAL(ctx, write)
}

// shared reports whether dir belongs to a group whose members all write to it: it is setgid and
// writable by the group. SQLite gives the log and its index the mode of the file.
func shared(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode()&fs.ModeSetgid != 0 && info.Mode().Perm()&0o020 != 0
}
