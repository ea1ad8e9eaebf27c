package sqliteledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

func migrations() fs.FS {
	files, err := fs.Sub(schemaFiles, "schema")
	if err != nil {
		panic(err)
	}
	return files
}

func TestOpenRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		make func(t *testing.T, path string)
		hint string
	}{
		"text": {func(t *testing.T, path string) { write(t, path, strings.Repeat("not a database\n", 100)) }, "name another file"},
		"newer": {func(t *testing.T, path string) {
			l := open(t, path)
			if _, err := l.conn.ExecContext(t.Context(), "PRAGMA user_version = 999"); err != nil {
				t.Fatal(err)
			}
			l.Close()
		}, "newer version"},
		"another kind": {func(t *testing.T, path string) {
			db, err := sqlite.Open(t.Context(), path, sqlite.Schema{Name: "x", ApplicationID: 1, Migrations: rawSchema}, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			db.Close()
		}, "no ledger"},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			test.make(t, path)
			before, _ := os.ReadFile(path)
			l, err := Open(t.Context(), path)
			if err == nil {
				l.Close()
			}
			if !errors.Is(err, quota.ErrLedgerUnusable) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), test.hint) {
				t.Errorf("got %v", err)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpenReadOnly(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root may write everything: only the words are checked, by TestErrorsInWords")
		return
	}
	path := file(t)
	open(t, path).Close()
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path); !errors.Is(err, quota.ErrLedgerUnusable) {
		t.Errorf("got %v", err)
	}
}

func TestTurnedReadOnly(t *testing.T) {
	l := open(t, file(t))
	mustCharge(t, l, aCharge(1, day(10)))
	for _, on := range []int{1, 0} {
		if _, err := l.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA query_only = %d", on)); err != nil {
			t.Fatal(err)
		}
		_, err := l.Charge(t.Context(), aCharge(1, day(10)))
		if on == 1 && (!errors.Is(err, quota.ErrLedgerUnusable) || !strings.Contains(err.Error(), "permissions")) || on == 0 && err != nil {
			t.Errorf("read-only %d: %v", on, err)
		}
	}
	if n := len(log(t, l)); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
}

func TestErrorsInWords(t *testing.T) {
	for err, want := range map[error]error{
		sqlite.ErrReadOnly:    quota.ErrLedgerUnusable,
		sqlite.ErrFull:        quota.ErrLedgerUnusable,
		sqlite.ErrDamaged:     quota.ErrLedgerUnusable,
		sqlite.ErrNewer:       quota.ErrLedgerUnusable,
		sqlite.ErrNotDatabase: quota.ErrLedgerUnusable,
		sqlite.ErrBusy:        quota.ErrUnreachable,
		fs.ErrClosed:          quota.ErrUnreachable,
	} {
		if got := inWords(fmt.Errorf("ledger.db: %w", err)); !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	path := file(t)
	l := open(t, path)
	for range 500 {
		mustCharge(t, l, aCharge(1, day(1000)))
	}
	l.Close()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(content); i++ { // all but the first page
		content[i] = 0x5a
	}
	write(t, path, string(content))
	l, err = Open(t.Context(), path)
	if err == nil {
		defer l.Close()
		_, err = l.Charge(t.Context(), aCharge(1, day(1000)))
	}
	if !errors.Is(err, quota.ErrLedgerUnusable) {
		t.Errorf("got %v", err)
	}
}

func TestFullDisk(t *testing.T) {
	l := open(t, file(t))
	mustCharge(t, l, aCharge(1, day(100_000)))
	if _, err := l.conn.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // as it stands
		t.Fatal(err)
	}
	var err error
	told := 1
	for ; err == nil && told < 1000; told++ {
		_, err = l.Charge(t.Context(), aCharge(1, day(100_000)))
	}
	if !errors.Is(err, quota.ErrLedgerUnusable) || !strings.Contains(err.Error(), "space") {
		t.Errorf("got %v", err)
	}
	if _, err := l.conn.ExecContext(t.Context(), "PRAGMA max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	mustCharge(t, l, aCharge(1, day(100_000)))
	if n := len(log(t, l)); n != told {
		t.Errorf("%d entries, want %d", n, told)
	}
}

func TestStampsRiseWhateverTheClockDoes(t *testing.T) {
	l := open(t, file(t))
	start := time.Date(2026, 3, 8, 9, 59, 59, 0, time.UTC)
	clock := start
	l.Now = func() time.Time { return clock }
	last := time.Time{}
	for _, jump := range []time.Duration{0, -time.Hour, 300 * 24 * time.Hour, -100 * 365 * 24 * time.Hour, 0, time.Microsecond} {
		clock = start.Add(jump)
		d := mustCharge(t, l, aCharge(1, day(100)))
		if !d.At.After(last) {
			t.Errorf("jump %v: stamped %v after %v", jump, d.At, last)
		}
		last = d.At
	}
	log(t, l)
}

func TestClockBeforeTheEpoch(t *testing.T) {
	l := open(t, file(t))
	l.Now = func() time.Time { return time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC) }
	mustCharge(t, l, aCharge(1, day(2)))
	mustCharge(t, l, aCharge(1, day(2)))
	if d, err := l.Charge(t.Context(), aCharge(1, day(2))); err != nil || d.Allowed {
		t.Errorf("third: %+v, %v", d, err)
	}
	log(t, l)
}

func TestTrimmingIsBounded(t *testing.T) {
	l := open(t, file(t))
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l.Now = func() time.Time { return clock }
	for range 150 {
		mustCharge(t, l, aCharge(1, day(1000)))
	}
	clock = clock.Add(quota.Retention * 34 / 32)
	for _, want := range []int{150 + 1 - 64, 150 + 2 - 128, 3, 4} {
		mustCharge(t, l, aCharge(1, day(1000)))
		if n := len(log(t, l)); n != want {
			t.Errorf("%d entries, want %d", n, want)
		}
	}
}

func TestExpiredReservationsAreForgotten(t *testing.T) {
	l := open(t, file(t))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := start
	l.Now = func() time.Time { return clock }
	reserve := func(id string) {
		t.Helper()
		r := quota.Reserve{Credential: "key1", ID: "default." + id, Units: 1, Limits: day(100), TTL: time.Hour}
		if d, err := l.Reserve(t.Context(), r); err != nil || !d.Allowed {
			t.Fatalf("reserve: %+v, %v", d, err)
		}
	}
	held := func() (rows int, live []quota.Reservation) {
		t.Helper()
		live, err := l.Reservations(t.Context(), "key1", "default")
		if err := errors.Join(err, l.db.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM reservations").Scan(&rows)); err != nil {
			t.Fatal(err)
		}
		return rows, live
	}
	reserve("a")
	clock = start.Add(2 * time.Hour)
	reserve("b") // from now on nothing is decided at an earlier time
	clock = start.Add(time.Minute)
	if rows, live := held(); rows > 2 || len(live) != 1 {
		t.Errorf("after the jump: %d rows, live: %v", rows, live)
	}
	clock = start.Add(4 * time.Hour)
	mustCharge(t, l, aCharge(1, day(100))) // from now on no time is earlier
	reserve("c")
	if rows, live := held(); rows != 1 || len(live) != 1 {
		t.Errorf("in the end: %d rows, live: %v", rows, live)
	}
}

// A process must not go on granting from a file that others do not see any more.
func TestReplacedFile(t *testing.T) {
	path := file(t)
	l := open(t, path)
	mustCharge(t, l, aCharge(1, day(100)))
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"moved", "replaced"} {
		if _, err := l.Charge(t.Context(), aCharge(1, day(100))); !errors.Is(err, quota.ErrLedgerUnusable) {
			t.Errorf("%s: %v, want ErrLedgerUnusable", what, err)
		}
		if what == "moved" {
			mustCharge(t, open(t, path), aCharge(1, day(100)))
		}
	}
}

func TestAnswersAreForgotten(t *testing.T) {
	l := open(t, file(t))
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l.Now = func() time.Time { return clock }
	keyed := func(key string) quota.Decision {
		c := aCharge(1, day(1000))
		c.Key = key
		return mustCharge(t, l, c)
	}
	for i := range 20 {
		keyed(fmt.Sprint("run", i))
	}
	if !keyed("run0").Replayed {
		t.Error("run0 is not known")
	}
	clock = clock.Add(quota.Retention + time.Minute)
	if keyed("run0").Replayed {
		t.Error("run0 is still known")
	}
	for i := range 5 {
		keyed(fmt.Sprint("later", i))
	}
	var kept int
	if err := l.db.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM answers").Scan(&kept); err != nil || kept != 6 {
		t.Errorf("%d answers kept, want 6, %v", kept, err)
	}
}

func TestReplayIsTheVeryAnswer(t *testing.T) {
	path := file(t)
	l := open(t, path)
	c := aCharge(3, day(4))
	c.Key = "backfill:3"
	first := mustCharge(t, l, c)
	l.Close()
	c.ID = "another"
	again := mustCharge(t, open(t, path), c)
	first.Replayed = true
	if fmt.Sprintf("%#v", again) != fmt.Sprintf("%#v", first) {
		t.Errorf("got %#v\nwant %#v", again, first)
	}
}

// TestBucketIDsBeginAtTwo guards the choice of ids: a statement must not be planned anew from
// bucket to bucket.
func TestBucketIDsBeginAtTwo(t *testing.T) {
	l := open(t, file(t))
	mustCharge(t, l, aCharge(1, day(4)))
	var id int64
	if err := l.db.Read.QueryRowContext(t.Context(), "SELECT min(id) FROM buckets").Scan(&id); err != nil || id != 2 {
		t.Errorf("id %d, %v", id, err)
	}
}

func TestBytesOfAnEntry(t *testing.T) {
	path := file(t)
	l := open(t, path)
	const entries = 2000
	for range entries {
		mustCharge(t, l, aCharge(1, day(1_000_000)))
	}
	l.Close() // folds the log into the file
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes := info.Size() / entries; bytes > 200 {
		t.Errorf("%d bytes an entry", bytes)
	} else {
		t.Logf("%d bytes an entry with its labels", bytes)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
