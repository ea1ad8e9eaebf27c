//go:build unix

package sqlite

import (
	"bytes"
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

// TestReadingCreatesNothing: not the file, not its directory; and what Open refuses is refused.
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
	for name, c := range map[string]struct {
		content []byte
		want    error
	}{
		"a text":            {[]byte("hello"), ErrNotDatabase},
		"another program's": {foreign(t, "CREATE TABLE t (x)"), ErrNotDatabase},
		"newer":             {foreign(t, "PRAGMA application_id = 0x4e4f5445; PRAGMA user_version = 3; CREATE TABLE t (x)"), ErrNewer},
	} {
		t.Run(name, func(t *testing.T) {
			path := fileOf(t, c.content)
			_, err := OpenReading(t.Context(), path, notes(), Options{})
			checkError(t, err, c.want, path)
			if after, _ := os.ReadFile(path); !bytes.Equal(after, c.content) {
				t.Error("the file was changed")
			}
		})
	}
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

// TestReadingWhatCannotBeWritten runs in a process without the rights of root, which ignores
// permission bits.
func TestReadingWhatCannotBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		file, dir os.FileMode
		open      bool // by another process
	}{
		"the file":                     {0o444, 0o777, false},
		"the directory":                {0o666, 0o555, false},
		"both":                         {0o444, 0o555, false},
		"both, while somebody writes":  {0o644, 0o755, true},
		"the file, while it is opened": {0o444, 0o777, true},
	} {
		t.Run(name, func(t *testing.T) {
			top := publicDir(t)
			path := filepath.Join(top, "d", "n.db")
			if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, closed(t), 0o666); err != nil {
				t.Fatal(err)
			}
			if c.open {
				chmod(t, path, 0o644)
				if err := mustOpen(t, path, Options{}).Update(t.Context(), insert("second")); err != nil {
					t.Fatal(err)
				}
			}
			chmod(t, path, c.file)
			chmod(t, filepath.Dir(path), c.dir)
			defer chmod(t, filepath.Dir(path), 0o777)
			output, code := runUnprivileged(t, top, path, "NOTEBOOK_READ=1")
			if want := map[bool]string{false: "1 notes\n", true: "2 notes\n"}[c.open]; code != 0 || output != want {
				t.Errorf("exit %d, %s", code, output)
			}
		})
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
