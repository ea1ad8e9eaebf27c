package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// checkError checks that err is of a kind, names the path once, and says what to do.
func checkError(t *testing.T, err, kind error, path string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got error %v, want %q", err, kind)
	}
	if n := strings.Count(err.Error(), path); n != 1 {
		t.Errorf("the path stands %d times in %q", n, err)
	}
	if n := strings.Count(err.Error(), kind.Error()); n != 1 {
		t.Errorf("what to do stands %d times in %q", n, err)
	}
}

func fileOf(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	must(t, os.WriteFile(path, content, 0o600))
	return path
}

// foreign returns a database created with plain SQL, as by another program.
func foreign(t *testing.T, statements string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "foreign.db")
	db, err := sql.Open("sqlite", path)
	must(t, err)
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
	must(t, db.Close())
	return read(t, path)
}

// closed returns the bytes of a notebook that was closed properly.
func closed(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "n.db")
	must(t, openAs(t, path, notes()).Close())
	return read(t, path)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return content
}

// SQLite would replay the log into the new file, which would then have some pages of the old one.
func TestLogWithoutFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db := openAs(t, path, notes())
	must(t, db.Update(t.Context(), insert("second")))
	must(t, os.Rename(path, path+".old"))
	want := read(t, path+"-wal")
	_, err := Open(t.Context(), path, notes())
	checkError(t, err, ErrDamaged, path)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was created: %v", err)
	}
	if got := read(t, path+"-wal"); len(want) == 0 || !bytes.Equal(got, want) {
		t.Errorf("the log has %d bytes, was %d", len(got), len(want))
	}
	db.Close()
}

func TestOpenRefuses(t *testing.T) {
	const id = "PRAGMA application_id = "
	whole := closed(t)
	for _, c := range []struct {
		name    string
		content []byte
		want    error
	}{
		{"nothing", nil, ErrDamaged},
		{"one byte", []byte{'S'}, ErrDamaged},
		{"a short text", []byte("hello"), ErrNotDatabase},
		{"a long text", bytes.Repeat([]byte("quota: 10000\n"), 1000), ErrNotDatabase},
		{"zeros", make([]byte, 8192), ErrNotDatabase},
		{"another program's", foreign(t, "CREATE TABLE t (x)"), ErrNotDatabase},
		{"another program's with an id", foreign(t, id+"7; CREATE TABLE t (x)"), ErrNotDatabase},
		{"another program's, empty but for its id", foreign(t, id+"7"), ErrNotDatabase},
		{"cut short between pages", whole[:4096], ErrDamaged},
		{"cut short within a page", whole[:5000], ErrDamaged},
		{"cut short within its header", whole[:50], ErrDamaged},
		{"newer", foreign(t, id+"0x4e4f5445; PRAGMA user_version = 3"), ErrNewer},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := fileOf(t, c.content)
			_, err := Open(t.Context(), path, notes())
			checkError(t, err, c.want, path)
			if c.want != ErrDamaged || len(c.content) < 2 { // a reader may notice other damage later
				_, err = OpenReading(t.Context(), path, notes())
				checkError(t, err, c.want, path)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(after, c.content) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(t.Context(), dir, notes())
	checkError(t, err, ErrNotDatabase, dir)

	under := filepath.Join(fileOf(t, nil), "n.db")
	_, err = Open(t.Context(), under, notes())
	if err == nil || strings.Count(err.Error(), under) != 1 {
		t.Errorf("a file as directory: %v", err)
	}
}

func TestMigrationsAreAppliedOnceInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.db")
	db := openAs(t, path, older())
	defer db.Close() // still open when a newer version migrates the file
	if n := count(t, db.Read); n != 0 {
		t.Errorf("%d notes before migration 2", n)
	}
	for range 2 {
		if n := count(t, mustOpen(t, path).Read); n != 1 {
			t.Errorf("%d notes after migration 2, want 1", n)
		}
	}
	_, err := Open(t.Context(), path, older())
	checkError(t, err, ErrNewer, path)
}

func TestAFailedMigrationLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.db")
	broken := notes()
	broken.Migrations.(fstest.MapFS)["002.sql"].Data = []byte(
		"CREATE TABLE half (x); CREATE TABLE notes (x);")
	_, err := Open(t.Context(), path, broken)
	if err == nil || !strings.Contains(err.Error(), "002.sql") ||
		!strings.Contains(err.Error(), path) {
		t.Fatalf("got %v", err)
	}
	db := mustOpen(t, path) // with the corrected migration
	var half int
	err = db.Read.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").Scan(&half)
	if err != nil || half != 0 {
		t.Errorf("half = %d, %v", half, err)
	}
}

func TestMigrationsHaveNoGaps(t *testing.T) {
	gap := Schema{ApplicationID: 1, Migrations: fstest.MapFS{"001.sql": {}, "003.sql": {}}}
	path := filepath.Join(t.TempDir(), "n.db")
	_, err := Open(t.Context(), path, gap)
	if err == nil || !strings.Contains(err.Error(), "want 002.sql") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}

func TestParseURL(t *testing.T) {
	for url, want := range map[string]string{
		"sqlite:///var/lib/q/ledger.db": "/var/lib/q/ledger.db",
		"sqlite:ledger.db":              "ledger.db",
		"sqlite:dir/a b.db":             "dir/a b.db",
		"sqlite:/abs.db":                "/abs.db",
		"sqlite:///a%20b%3Fc%25.db":     "/a b?c%.db",
		"sqlite:%C3%A9漢.db":             "é漢.db",
	} {
		if got, err := ParseURL(url); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", url, got, err, want)
		}
	}
	for url, want := range map[string]string{
		"":                       "want sqlite:///",
		"/var/ledger.db":         "want sqlite:///",
		"redis://localhost":      "want sqlite:///",
		"sqlite:":                "no file is named",
		"sqlite:///":             "no file is named",
		"sqlite:///dir/":         "no file is named",
		"sqlite::memory:":        "no file is named",
		"sqlite:a%00b":           "a line break or another control character",
		"sqlite:a.db\n":          "a line break or another control character",
		"sqlite://ledger.db":     "two slashes name a host",
		"sqlite://u:hunter2@h/l": "two slashes name a host",
		"redis://:hunter2@h":     "want sqlite:///",
		"sqlite:///l.db?mode=ro": "%3F",
		"sqlite:///l.db#x":       "%23",
		"sqlite:///100%.db":      "%25",
	} {
		got, err := ParseURL(url)
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %q, %v; want an error with %q", url, got, err, want)
		}
	}
}
