package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"
)

// notes returns a kind of file for these tests, with two migrations.
func notes() Schema {
	return Schema{Name: "notebook", ApplicationID: 0x4e4f5445, Migrations: fstest.MapFS{
		"001.sql": {Data: []byte("CREATE TABLE notes (id INTEGER PRIMARY KEY, text NOT NULL);")},
		"002.sql": {Data: []byte("CREATE TABLE marks (note INTEGER NOT NULL REFERENCES notes);" +
			"INSERT INTO notes (text) VALUES ('first');")},
	}}
}

// older returns notes before its second migration.
func older() Schema {
	s := notes()
	delete(s.Migrations.(fstest.MapFS), "002.sql")
	return s
}

// openAs opens a file that the test closes itself.
func openAs(t *testing.T, path string, schema Schema) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, schema)
	must(t, err)
	return db
}

func mustOpen(t *testing.T, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, notes())
	return opened(t, db, err)
}

// opened closes an opened file at the end of the test.
func opened(t *testing.T, db *DB, err error) *DB {
	t.Helper()
	must(t, err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func insert(text string) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO notes (text) VALUES (?)", text)
		return err
	}
}

func count(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	must(t, db.QueryRow("SELECT count(*) FROM notes").Scan(&n))
	return n
}

func TestOpenCreatesForTheOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	db := mustOpen(t, filepath.Join(dir, "n.db"))
	must(t, db.Update(t.Context(), insert("second")))
	for path, want := range map[string]os.FileMode{
		dir: 0o700, filepath.Dir(dir): 0o700,
		db.Path(): 0o600, db.Path() + "-wal": 0o600, db.Path() + "-shm": 0o600,
	} {
		info, err := os.Stat(path)
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

// TestInterruptedCreation: whenever the creation of a file is interrupted, the next program can use
// the path.
func TestInterruptedCreation(t *testing.T) {
	dir, interrupted := t.TempDir(), true
	for after := time.Duration(0); interrupted; after += after/64 + 20*time.Microsecond {
		path := filepath.Join(dir, after.String())
		ctx, cancel := context.WithTimeout(t.Context(), after)
		db, err := Open(ctx, path, notes())
		cancel()
		if interrupted = err != nil; interrupted {
			db = openAs(t, path, notes())
		}
		must(t, db.Close())
	}
}

func TestOpenTakesAnyPath(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"a b.db", "50%.db", "%41.db", "what?mode=memory", "#1.db", "-x.db", "é\u0301漢\r.db",
		"a&b=c+d",
	} {
		path := filepath.Join(dir, name)
		mustOpen(t, path)
		if _, err := os.Stat(path + "-wal"); err != nil {
			t.Errorf("%q: the log is not beside the file: %v", name, err)
		}
	}
	t.Chdir(dir)
	if db := mustOpen(t, "relative.db"); db.Path() != filepath.Join(dir, "relative.db") {
		t.Errorf("path %q", db.Path())
	}
}

func TestEveryConnectionHasThePragmas(t *testing.T) {
	db := mustOpen(t, filepath.Join(t.TempDir(), "n.db"))
	want := map[string]string{
		"journal_mode": "wal", "busy_timeout": "10000", "foreign_keys": "1", "temp_store": "2",
	}
	check := func(conn *sql.Conn) {
		t.Helper()
		for pragma, value := range want {
			var got string
			err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got)
			if err != nil || got != value {
				t.Errorf("%s = %q, %v; want %s", pragma, got, err, value)
			}
		}
	}
	for range readers { // held, so that each is a new one
		conn, err := db.Read.Conn(t.Context())
		must(t, err)
		defer conn.Close()
		check(conn)
	}
	conn, err := db.Write.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	want["synchronous"], want["busy_timeout"] = "2", "0"
	check(conn)
}

func TestUpdateIsAllOrNothing(t *testing.T) {
	db := mustOpen(t, filepath.Join(t.TempDir(), "n.db"))
	boom := os.ErrPermission // an error of fn is never taken for one of the file
	err := db.Update(t.Context(), func(tx *sql.Tx) error {
		if err := insert("x")(tx); err != nil {
			return err
		}
		return boom
	})
	if err != boom {
		t.Errorf("got %v, want fn's error untouched", err)
	}
	if n := count(t, db.Read); n != 1 {
		t.Errorf("%d notes, want 1", n)
	}
}

func TestReadersSeeWhatIsCommittedAndCannotWrite(t *testing.T) {
	db := mustOpen(t, filepath.Join(t.TempDir(), "n.db"))
	err := db.Update(t.Context(), func(tx *sql.Tx) error {
		if err := insert("x")(tx); err != nil {
			return err
		}
		if n := count(t, db.Read); n != 1 {
			t.Errorf("%d notes during the transaction, want 1", n)
		}
		return nil
	})
	must(t, err)
	if n := count(t, db.Read); n != 2 {
		t.Errorf("%d notes after the transaction, want 2", n)
	}
	if err := db.View(t.Context(), insert("x")); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a write through Read: %v", err)
	}
}

func TestFullDisk(t *testing.T) {
	db := mustOpen(t, filepath.Join(t.TempDir(), "n.db"))
	if _, err := db.Write.Exec("PRAGMA max_page_count = 5"); err != nil {
		t.Fatal(err)
	}
	err := db.Update(t.Context(), insert(string(make([]byte, 1<<16))))
	checkError(t, err, ErrFull, db.Path())
	if n := count(t, db.Read); n != 1 {
		t.Errorf("%d notes, want 1", n)
	}
}

func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.db")
	const impatient = 20 * time.Millisecond
	old := openAs(t, path, older())
	err := old.Update(t.Context(), func(*sql.Tx) error {
		_, err := open(t.Context(), path, notes(), impatient) // it has to write a migration
		checkError(t, err, ErrBusy, path)
		return nil
	})
	must(t, err)
	one, two := mustOpen(t, path), mustOpen(t, path)
	two.patience = impatient
	err = one.Update(t.Context(), func(*sql.Tx) error {
		checkError(t, two.Update(t.Context(), insert("x")), ErrBusy, path)
		mustOpen(t, path) // it has nothing to write
		return nil
	})
	must(t, err)
	if err := two.Update(t.Context(), insert("x")); err != nil {
		t.Errorf("once the lock is free: %v", err)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.db")
	one, two := mustOpen(t, path), mustOpen(t, path)
	err := one.Update(t.Context(), func(*sql.Tx) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := two.Update(ctx, insert("x")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		return nil
	})
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
