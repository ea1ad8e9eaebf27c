package sqlitestore_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// Damage to anything but the entries never makes room: it denies, and names the bucket.
func TestDamageDenies(t *testing.T) {
	for name, c := range map[string]struct {
		damage, finds string
	}{
		"lost row":          {"DELETE FROM buckets", "row in buckets is missing"},
		"lost hold":         {"DELETE FROM holds", "20 units stay held"},
		"smaller hold":      {"UPDATE holds SET units = 1", "20 units stay held"},
		"hold of nobody":    {"UPDATE holds SET drawn = -3", "20 units stay held"},
		"drawn hold":        {"UPDATE holds SET drawn = 19", "20 units stay held"},
		"hold that is over": {"UPDATE holds SET expires_at = created_at", "20 units stay held"},
		"hold before 1970":  {"UPDATE holds SET expires_at = -5", "20 units stay held"},
		"hold made later":   {"UPDATE holds SET created_at = created_at + 72000000000", "20 units stay held"},
		"word of a hold":    {"UPDATE holds SET lapse = 'relapse'", "20 units stay held"},
		"hold of a person":  {"UPDATE holds SET manual = -1", "not what was written"},
		"hold elsewhere":    {"UPDATE holds SET bucket = 'other'", "20 units stay held"},
		"row elsewhere":     {"UPDATE buckets SET bucket = 'other'", "is missing"},
		"floor":             {"UPDATE buckets SET floor = floor + 90000000000", "not what was"},
		"retention":         {"UPDATE buckets SET keep = keep / 2", "not what was"},
		"levels":            {"UPDATE buckets SET levels = '[{}]'", "not what was"},
		"recorded":          {"UPDATE buckets SET recorded = 3", "20 units stay held"},
		"newest ahead": {"UPDATE entries SET at = at + 126144000000000 WHERE total = 50",
			"its newest time is 2030"},
		"total of the oldest": {"UPDATE entries SET total = total + 25 WHERE total = 10", "1 of 5|4 of 5"},
		"total of the newest": {"UPDATE entries SET total = 20 WHERE total = 50", "1 of 5"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := clocked(t)
			mustReserve(t, l, "r", 20, "", time.Hour)
			for range 5 {
				mustCharge(t, l, 10, day(100))
			}
			sound(t, l)
			exec(t, l, c.damage)
			d, err := l.Charge(t.Context(), aCharge(31, day(100)))
			damaged, isDamaged := errors.AsType[*quota.DamagedError](err)
			if d.Allowed || !isDamaged || damaged.Bucket != "default" {
				t.Errorf("31 beside 50 used and 20 held of 100: %+v, %v", d, err)
			}
			said := check(t, l, false)
			if words := strings.Split(c.finds, "|"); !strings.Contains(said, words[0]) &&
				!strings.Contains(said, words[len(words)-1]) {
				t.Errorf("found %q, want %q", said, c.finds)
			}
			if check(t, l, true) != said {
				t.Error("the repair found something else")
			}
			sound(t, l)
			u, err := l.Usage(t.Context(), "key1", day(100))
			if err != nil || u.Buckets[0].Limits[0].Used != 50 || u.Buckets[0].Held != 20 {
				t.Errorf("after the repair: %+v, %v", u, err)
			}
			log(t, l)
		})
	}
}

// A flipped bit of any stored value but the entries allows no charge that was denied.
func TestFlippedBitsMakeNoRoom(t *testing.T) {
	l, now := clocked(t)
	window, err := quota.ParseWindow("restoring 1/1m", "")
	must(t, err)
	limits := append(day(100), quota.Limit{Bucket: "default", Units: 90, Window: window})
	mustReserve(t, l, "r", 20, "", time.Hour)
	mustReserve(t, l, "w", 5, quota.LapseCharge, time.Hour)
	exec(t, l, "PRAGMA synchronous = off")
	mustCharge(t, l, 60, limits)
	*now = now.Add(time.Minute)
	denied := func() bool {
		c := aCharge(16, limits)
		c.DryRun = true
		d, _ := l.Charge(t.Context(), c)
		return !d.Allowed
	}
	if !denied() {
		t.Fatal("16 fit beside 60 used and 25 held of 100")
	}
	numbers := map[string][]string{
		"holds":   {"units", "most", "drawn", "created_at", "expires_at", "manual"},
		"buckets": {"suspended_until", "reset_at", "keep", "floor", "digest"},
	}
	texts := map[string][]string{
		"holds":   {"credential", "bucket", "id", "lapse"},
		"buckets": {"credential", "bucket", "levels"},
	}
	for table, columns := range numbers {
		for _, column := range columns {
			for bit := range 63 {
				change := fmt.Sprintf("UPDATE %s SET %s = (%[2]s | %d) - (%[2]s & %[3]d)", table, column,
					int64(1)<<bit)
				flip(t, l, change, denied)
			}
		}
	}
	for table, columns := range texts {
		for _, column := range columns {
			for place := range 12 {
				change := fmt.Sprintf("UPDATE %s SET %s = substr(%[2]s, 1, %[3]d) || "+
					"char(unicode(substr(%[2]s, %[3]d + 1, 1)) + 1) || substr(%[2]s, %[3]d + 2) "+
					"WHERE length(%[2]s) > %[3]d", table, column, place)
				flip(t, l, change, denied)
			}
		}
	}
}

// flip makes a change, and undoes it.
func flip(t *testing.T, l *env, change string, denied func() bool) {
	t.Helper()
	exec(t, l, "CREATE TEMP TABLE h AS SELECT * FROM holds")
	exec(t, l, "CREATE TEMP TABLE b AS SELECT * FROM buckets")
	exec(t, l, change)
	if !denied() {
		t.Errorf("allowed after %s", change)
	}
	for _, undo := range []string{"DELETE FROM holds", "INSERT INTO holds SELECT * FROM h",
		"DELETE FROM buckets", "INSERT INTO buckets SELECT * FROM b", "DROP TABLE h", "DROP TABLE b"} {
		exec(t, l, undo)
	}
}

// After a charge under a clock that was years ahead, a repair has it count from now.
func TestClockThatWasAhead(t *testing.T) {
	l, now := clocked(t)
	begin := *now
	*now = begin.AddDate(4, 0, 0)
	mustCharge(t, l, 60, day(100))
	*now = begin
	if _, err := l.Charge(t.Context(), aCharge(1, day(100))); !errors.Is(err,
		quota.ErrLedgerUnusable) || !strings.Contains(err.Error(), "ledger check --repair") {
		t.Errorf("%v", err)
	}
	check(t, l, true)
	sound(t, l)
	d, err := l.Charge(t.Context(), aCharge(41, day(100)))
	if want := begin.Add(24 * time.Hour); err != nil || d.Allowed || !d.RetryAt.Equal(want) {
		t.Errorf("%+v, %v; want a retry at %s", d, err, want)
	}
	mustCharge(t, l, 40, day(100))
}

// A file that exists and is empty is no ledger.
func TestEmptyFileIsNoLedger(t *testing.T) {
	for _, content := range []string{"", "S"} {
		path := file(t)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		l, err := openAt(t.Context(), path)
		if err == nil {
			l.Close()
		}
		if !errors.Is(err, quota.ErrLedgerUnusable) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// Thousands of holds that lapse together become entries in steps, and a reading waits for none.
func TestManyLapseTogether(t *testing.T) {
	l, now := clocked(t)
	const holds, callers = 2500, 50 // who share transactions
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := caller; i < holds; i += callers {
				d, err := l.Reserve(t.Context(), quota.Reserve{Credential: "key1",
					ID: fmt.Sprintf("default.r%d", i), Lapse: quota.LapseCharge, TTL: time.Minute,
					Costs: []quota.Cost{{Bucket: "default", Units: 1}}, Limits: day(10_000)})
				if err != nil || !d.Allowed {
					t.Error(d, err)
				}
			}
		})
	}
	all.Wait()
	*now = now.Add(time.Hour)
	u, err := l.Usage(t.Context(), "key1", day(10_000))
	if err != nil || u.Buckets[0].Limits[0].Used != holds || u.Buckets[0].Held != 0 {
		t.Errorf("%+v, %v", u, err)
	}
	if n := number(t, l, "SELECT count(*) FROM entries"); n != 0 {
		t.Errorf("a reading has written %d entries", n)
	}
	if d, err := l.Charge(t.Context(), aCharge(7501, day(10_000))); err != nil || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
	if n := number(t, l, "SELECT count(*) FROM entries"); n != 0 {
		t.Errorf("a denial has written %d entries", n)
	}
	mustCharge(t, l, 7500, day(10_000))
	entries(t, l, holds+1)
	sound(t, l)
}

// TestRepairEnds: a repair whose mark is lost again and again ends with an error.
func TestRepairEnds(t *testing.T) {
	l, _ := clocked(t)
	mustCharge(t, l, 1, day(100))
	mustCharge(t, l, 1, day(100))
	exec(t, l, "UPDATE entries SET total = 7 WHERE total = 2")
	exec(t, l, `CREATE TRIGGER unmark AFTER INSERT ON buckets
		BEGIN UPDATE buckets SET digest = 0; END`)
	found, err := l.Check(t.Context(), "key1", "default", true)
	if !errors.Is(err, quota.ErrUnreachable) || len(found) == 0 {
		t.Errorf("%v, %v", found, err)
	}
	exec(t, l, "DROP TRIGGER unmark")
	check(t, l, true)
	sound(t, l)
}

// TestRepairInSteps: a repair changes at most 10,000 entries in one transaction. One that ends
// before it is done leaves the bucket denied, and the next completes it.
func TestRepairInSteps(t *testing.T) {
	l, _ := clocked(t)
	const entries, limit = 12_000, 15_000
	mustCharge(t, l, 1, day(limit))
	exec(t, l, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT %d)
		INSERT INTO entries (credential, bucket, at, id, units, total, labels)
		SELECT credential, bucket, at + i, id || i, 1, 7 + i, labels FROM entries, n`, entries-1))
	exec(t, l, `CREATE TRIGGER stop BEFORE INSERT ON entries WHEN NEW.total = 11500
		BEGIN SELECT raise(ABORT, 'stopped'); END`)
	if _, err := l.Check(t.Context(), "key1", "default", true); err == nil {
		t.Error("the repair was not stopped")
	}
	right := number(t, l, `SELECT count(*) FROM entries
		WHERE total = at + 1 - (SELECT min(at) FROM entries)`)
	if right < 8000 || right > 10_001 {
		t.Errorf("%d entries were repaired before it was stopped", right)
	}
	if d, err := l.Charge(t.Context(), aCharge(1, day(limit))); d.Allowed ||
		!errors.Is(err, quota.ErrLedgerUnusable) {
		t.Errorf("in the middle of a repair: %+v, %v", d, err)
	}
	exec(t, l, "DROP TRIGGER stop")
	if findings := check(t, l, true); !strings.Contains(findings, "a repair of it was interrupted") {
		t.Error(findings)
	}
	sound(t, l)
	if d, err := l.Charge(t.Context(), aCharge(limit-entries+1, day(limit))); err != nil || d.Allowed {
		t.Errorf("beyond the limit: %+v, %v", d, err)
	}
	mustCharge(t, l, limit-entries, day(limit))
}
