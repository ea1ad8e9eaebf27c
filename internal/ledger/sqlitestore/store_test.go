package sqlitestore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/ledger/sqlitestore"
	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
)

// unusableFor reports whether an error says that, with these words.
func unusableFor(err error, words string) bool {
	return errors.Is(err, quota.ErrLedgerUnusable) && strings.Contains(err.Error(), words)
}

func TestTurnedReadOnly(t *testing.T) {
	l := openEnv(t, file(t))
	mustCharge(t, l, 1, day(10))
	for _, readOnly := range []int{1, 0} {
		exec(t, l, fmt.Sprintf("PRAGMA query_only = %d", readOnly))
		err := l.charge(t.Context())
		if readOnly == 1 && !unusableFor(err, "permissions") || readOnly == 0 && err != nil {
			t.Errorf("read-only %d: %v", readOnly, err)
		}
	}
	entries(t, l, 2)
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
		got := sqlitestore.InWords(fmt.Errorf("ledger.db: %w", err))
		if !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
}

func TestDamagedFile(t *testing.T) {
	path := file(t)
	l := openEnv(t, path)
	for range 500 {
		mustCharge(t, l, 1, day(1000))
	}
	l.Close()
	content, err := os.ReadFile(path)
	must(t, err)
	for i := 4096; i < len(content); i++ { // all but the first page
		content[i] = 0x5a
	}
	must(t, os.WriteFile(path, content, 0o600))
	l, err = openAt(t.Context(), path)
	if err == nil {
		defer l.Close()
		_, err = l.Charge(t.Context(), aCharge(1, day(1000)))
	}
	if !errors.Is(err, quota.ErrLedgerUnusable) {
		t.Errorf("got %v", err)
	}
}

func TestFullDisk(t *testing.T) {
	l := openEnv(t, file(t))
	mustCharge(t, l, 1, day(100_000))
	exec(t, l, "PRAGMA max_page_count = 1")
	var err error
	charged := 1
	for ; err == nil && charged < 1000; charged++ {
		_, err = l.Charge(t.Context(), aCharge(1, day(100_000)))
	}
	if !unusableFor(err, "space") {
		t.Errorf("got %v", err)
	}
	exec(t, l, "PRAGMA max_page_count = 100000")
	mustCharge(t, l, 1, day(100_000))
	entries(t, l, charged)
}

// A process must not go on granting from a file that others do not see any more.
func TestReplacedFile(t *testing.T) {
	path := file(t)
	l := openEnv(t, path)
	mustCharge(t, l, 1, day(100))
	other := file(t)
	openEnv(t, other).Close()
	for _, move := range [][2]string{{path, path + ".old"}, {other, path}} {
		must(t, os.Rename(move[0], move[1]))
		if err := l.charge(t.Context()); !errors.Is(err, quota.ErrLedgerUnusable) {
			t.Errorf("after %s: %v, want ErrLedgerUnusable", move, err)
		}
	}
}

func TestAnswersAreForgotten(t *testing.T) {
	l, clock := clocked(t)
	keyed := func(key string) quota.Decision {
		c := aCharge(1, day(1000))
		c.Key = key
		d, err := l.Charge(t.Context(), c)
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		return d
	}
	for i := range 20 {
		keyed(fmt.Sprint("run", i))
	}
	if !keyed("run0").Replayed {
		t.Error("run0 is not known")
	}
	*clock = clock.Add(quota.RetentionFor(day(1000)) - time.Microsecond)
	if !keyed("run0").Replayed {
		t.Error("run0 is not known to the end")
	}
	*clock = clock.Add(time.Microsecond)
	if keyed("run0").Replayed {
		t.Error("run0 is still known")
	}
	for i := range 5 {
		keyed(fmt.Sprint("later", i))
	}
	if answers := number(t, l, "SELECT count(*) FROM answers"); answers != 6 {
		t.Errorf("%d answers kept, want 6", answers)
	}
}

// Entries of lapses, and holds that are over, are forgotten in passing.
func TestLapsesAreForgotten(t *testing.T) {
	l, now := clocked(t)
	mustReserve(t, l, "a", 1, quota.LapseCharge, time.Minute)
	mustReserve(t, l, "over", 1, "", time.Hour)
	*now = now.Add(time.Hour)
	mustCharge(t, l, 1, day(100))
	*now = now.Add(quota.Retention + time.Hour)
	mustReserve(t, l, "b", 1, quota.LapseCharge, time.Minute)
	*now = now.Add(time.Hour)
	mustCharge(t, l, 1, day(100))
	if n := number(t, l, "SELECT count(*) FROM lapsed"); n != 1 {
		t.Errorf("%d lapses are known, want 1", n)
	}
	if n := number(t, l, "SELECT count(*) FROM holds"); n != 0 {
		t.Errorf("%d holds are kept", n)
	}
	sound(t, l)
}

func TestBytesOfAnEntry(t *testing.T) {
	path := file(t)
	l := openEnv(t, path)
	const entries, callers = 2000, 50 // who share transactions
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range entries / callers {
				mustCharge(t, l, 1, day(1_000_000))
			}
		})
	}
	all.Wait()
	l.Close() // folds the log into the file
	info, err := os.Stat(path)
	must(t, err)
	if bytes := info.Size() / entries; bytes > 200 {
		t.Errorf("%d bytes an entry", bytes)
	} else {
		t.Logf("%d bytes an entry with its labels", bytes)
	}
}
