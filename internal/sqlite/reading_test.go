//go:build unix

package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func mustRead(t *testing.T, path string) *DB {
	t.Helper()
	db, err := OpenReading(t.Context(), path, notes(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// TestReadingBesideAWriter: a reader sees what was committed last, and cannot write.
func TestReadingBesideAWriter(t *testing.T) {
	writer := mustOpen(t, filepath.Join(t.TempDir(), "n.db"), Options{})
	reader := mustRead(t, writer.Path())
	if err := writer.Update(t.Context(), insert("second")); err != nil {
		t.Fatal(err)
	}
	if n := count(t, reader.Read); n != 2 {
		t.Errorf("%d notes, want 2", n)
	}
	checkError(t, reader.Update(t.Context(), insert("x")), ErrReadOnly, writer.Path())
}

// TestReadingCreatesNothing: not the file, not its directory.
func TestReadingCreatesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	path := filepath.Join(dir, "n.db")
	if _, err := OpenReading(t.Context(), path, notes(), Options{}); !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), path) != 1 {
		t.Errorf("no file: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was made: %v", err)
	}
	dir = t.TempDir()
	_, err := OpenReading(t.Context(), dir, notes(), Options{})
	checkError(t, err, ErrNotDatabase, dir)
}

// TestReadingAnOlderFile brings it up to date.
func TestReadingAnOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.db")
	older := notes()
	older.Migrations = fstest.MapFS{"001.sql": older.Migrations.(fstest.MapFS)["001.sql"]}
	db, err := Open(t.Context(), path, older, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := count(t, mustRead(t, path).Read); n != 1 {
		t.Errorf("%d notes after migration 2, want 1", n)
	}
}

// TestStill: a file that was moved, deleted or replaced is not the one that was opened.
func TestStill(t *testing.T) {
	db := mustOpen(t, filepath.Join(t.TempDir(), "n.db"), Options{})
	if err := db.Still(); err != nil {
		t.Error(err)
	}
	if err := os.Rename(db.Path(), db.Path()+".old"); err != nil {
		t.Fatal(err)
	}
	checkError(t, db.Still(), ErrGone, db.Path())
	if err := os.WriteFile(db.Path(), closed(t), 0o600); err != nil {
		t.Fatal(err)
	}
	checkError(t, db.Still(), ErrGone, db.Path())
	if err := os.Rename(db.Path()+".old", db.Path()); err != nil {
		t.Fatal(err)
	}
	if err := db.Still(); err != nil {
		t.Errorf("put back: %v", err)
	}
}
