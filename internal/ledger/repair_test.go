package ledger_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestRepairWhileCharged: repairs that run during charges lose no entry, and a check then finds
// nothing.
func TestRepairWhileCharged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *store) {
		for range 20 {
			s.spend(t, 1, hundred)
		}
		if s.redis != nil {
			must(t, s.redis.ZRemRangeByRank(t.Context(), logOfK, 5, 5).Err())
		} else {
			s.exec(t, "DELETE FROM entries WHERE total = 6")
		}
		results := make(chan int)
		for n := range 4 {
			go func() {
				other, allowed := s.fresh(), 0
				defer other.Close()
				for i := range 15 {
					c := quota.Charge{Credential: "k", ID: quota.NewID(time.Now()),
						Costs: costs(1, "default"), Limits: hundred}
					if (n+i)%2 == 0 {
						c.Key = c.ID
					}
					if d, err := other.Charge(t.Context(), c); err == nil && d.Allowed {
						allowed++
					} else if err != nil && !isDamaged(err) {
						t.Error(err)
					}
				}
				results <- allowed
			}()
		}
		for range 5 {
			s.check(t, true)
		}
		allowed := 19
		for range 4 {
			allowed += <-results
		}
		s.check(t, true)
		s.expectSound(t)
		if n := s.stored(t); n != allowed {
			t.Errorf("%d entries, but %d charges were allowed", n, allowed)
		}
		s.expectDenied(t, int64(101-allowed), hundred)
	})
}

// TestRepairEnds: a repair whose mark is removed repeatedly ends with an error.
func TestRepairEnds(t *testing.T) {
	s := onSQLite(t)
	s.spend(t, 1, hundred)
	s.spend(t, 1, hundred)
	s.exec(t, "UPDATE entries SET total = 7 WHERE total = 2", `CREATE TRIGGER unmark AFTER INSERT
		ON buckets BEGIN UPDATE buckets SET digest = 0; END`)
	found, err := s.Check(t.Context(), "k", "default", true)
	if !errors.Is(err, quota.ErrUnreachable) || len(found) == 0 {
		t.Errorf("%v, %v", found, err)
	}
	s.exec(t, "DROP TRIGGER unmark")
	s.check(t, true)
	s.expectSound(t)
}

// TestRepairInSteps: a repair changes at most 10,000 entries in one transaction. If it stops early,
// charges of the bucket stay denied until another repair completes the work.
func TestRepairInSteps(t *testing.T) {
	s := onSQLite(t)
	const entries, limit = 12_000, 15_000
	s.spend(t, 1, dayOf(limit))
	s.exec(t, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT %d)
		INSERT INTO entries (credential, bucket, at, id, units, total, labels)
		SELECT credential, bucket, at + i, id || i, 1, 7 + i, labels FROM entries, n`, entries-1),
		`CREATE TRIGGER stop BEFORE INSERT ON entries WHEN NEW.total = 11500
		BEGIN SELECT raise(ABORT, 'stopped'); END`)
	if _, err := s.Check(t.Context(), "k", "default", true); err == nil {
		t.Error("the repair was not stopped")
	}
	right := math.MaxInt
	must(t, s.file.QueryRowContext(t.Context(), `SELECT count(*) FROM entries
		WHERE total = at + 1 - (SELECT min(at) FROM entries)`).Scan(&right))
	if right < 8000 || right > 10_001 {
		t.Errorf("%d entries were repaired before the repair was stopped", right)
	}
	if d, err := s.ask(1, dayOf(limit)); d.Allowed || !errors.Is(err, quota.ErrLedgerUnusable) {
		t.Errorf("charge in the middle of a repair: %+v, %v", d, err)
	}
	s.exec(t, "DROP TRIGGER stop")
	if found := s.check(t, true); !strings.Contains(found, "a repair of it was interrupted") {
		t.Error(found)
	}
	s.expectSound(t)
	s.expectDenied(t, limit-entries+1, dayOf(limit))
	s.spend(t, limit-entries, dayOf(limit))
}
