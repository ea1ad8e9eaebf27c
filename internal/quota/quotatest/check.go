package quotatest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// Damage is what somebody does to the bucket "default" of a credential by hand. Its entries are of
// 10, 20, 30 and 5 units.
type Damage string

// The kinds of Damage.
const (
	NewestDeleted  Damage = "newest entry deleted"
	MiddleDeleted  Damage = "entry of 20 units deleted"
	AllDeleted     Damage = "all entries deleted"
	StateTooHigh   Damage = "total of the state raised by 1000"
	StateTooLow    Damage = "total of the state lowered by 40"
	TotalTooHigh   Damage = "total of the oldest entry raised by 15"
	UnitsUnread    Damage = "units of the entry of 20 units cannot be read"
	LabelsUnread   Damage = "labels of the newest entry cannot be read"
	TakingUnread   Damage = "labels of the note of a correction cannot be read"
	SumTooLow      Damage = "sum of the entries lowered by 7"
	HoldUnreadable Damage = "what is left of the reservation default.r cannot be read"
	HeldTooHigh    Damage = "units held in the state raised by 7"
)

// damages says of each what the entries add up to after a repair, and whether a charge is decided
// before. Of HoldUnreadable it may be or not: a ledger may know what it held from elsewhere.
var damages = []struct {
	how   Damage
	used  int64
	still bool
}{
	{NewestDeleted, 60, false}, {MiddleDeleted, 45, true}, {AllDeleted, 0, false},
	{StateTooHigh, 65, false}, {StateTooLow, 65, false}, {TotalTooHigh, 65, false},
	{UnitsUnread, 65, false}, {LabelsUnread, 65, true}, {SumTooLow, 65, true},
	{TakingUnread, 65, true},
	{HoldUnreadable, 65, false}, {HeldTooHigh, 65, true},
}

// testCheck: what was done by hand denies, or makes no room; a check finds it, and a repair makes
// of it what the entries say.
func testCheck(t *testing.T, h Harness) {
	if _, ok := h.Open(t).(quota.Checker); !ok {
		return
	}
	t.Run("Buckets", func(t *testing.T) {
		s := newSubject(t, h, dayLimit)
		buckets := func(want string) {
			t.Helper()
			names, err := s.ledger.BucketsOf(t.Context(), s.credential)
			if err != nil || fmt.Sprint(quota.BucketNames(names)) != want {
				t.Errorf("%v, %v, want %s", names, err, want)
			}
		}
		buckets("[]")
		s.charge(1)
		err := s.ledger.Suspend(t.Context(), quota.Suspension{Credential: s.credential, Bucket: "closed", Until: epoch.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		buckets("[closed default]")
		for _, closed := range []string{"split/part-1.x", "Closed", "split/", "split/a/b"} {
			err := s.ledger.Suspend(t.Context(), quota.Suspension{Credential: s.credential, Bucket: closed, Until: epoch.Add(time.Hour)})
			if well := quota.CheckBucket(closed) == nil; well != (err == nil) ||
				!well && !errors.Is(err, quota.ErrMalformed) {
				t.Errorf("suspend %s: %v", closed, err)
			}
		}
		buckets("[closed default split/part-1.x]")
		s.reserve("default.r", 5, time.Hour)
		all, err := s.ledger.BucketsOf(t.Context(), s.credential)
		want := []quota.BucketTotal{{Bucket: "closed", Noted: true},
			{Bucket: "default", Units: 1 + 5}, {Bucket: "split/part-1.x", Noted: true}}
		if err != nil || !slices.Equal(all, want) {
			t.Errorf("%+v, %v, want %+v", all, err, want)
		}
	})
	if h.Break == nil { // it is one that nobody can lay hands on, or has tests of its own
		return
	}
	for _, c := range damages {
		t.Run(strings.ReplaceAll(string(c.how), " ", "_"), func(t *testing.T) {
			s := filled(t, h)
			s.wantSound()
			h.Break(t, s.credential, c.how)
			d, err := s.ledger.Charge(t.Context(), s.dry(31)) // 65 are used and 5 held
			if d.Allowed || c.still != (err == nil) && c.how != HoldUnreadable ||
				err != nil && !errors.Is(err, quota.ErrLedgerUnusable) {
				t.Errorf("charged before it was mended: %+v, %v", d, err)
			}
			before := h.Dump(t, s.credential)
			found := s.check(false)
			if len(found) == 0 || found[0].Bucket != "default" || found[0].What == "" ||
				found[0].Repair == "" {
				t.Errorf("found %+v", found)
			}
			if after := h.Dump(t, s.credential); after != before {
				t.Errorf("the check changed\n%s to\n%s", before, after)
			}
			if mended := s.check(true); fmt.Sprint(mended) != fmt.Sprint(found) {
				t.Errorf("mended %+v\nof    %+v", mended, found)
			}
			s.wantSound()
			held := int64(5)
			if c.how == HoldUnreadable {
				held = 0
			}
			s.wantRoom(c.used, held)
		})
	}
	t.Run("WhileCharged", func(t *testing.T) { testRepairWhileCharged(t, filled(t, h)) })
}

// filled is a bucket to lay hands on.
func filled(t *testing.T, h Harness) *subject {
	t.Helper()
	s := newSubject(t, h, dayLimit)
	s.reserve("default.r", 5, time.Hour)
	for _, units := range []int64{10, 20, 30, 7} {
		s.chargeAs(quota.Labels{"job": "sweep"}, units)
	}
	_, err := s.ledger.Adjust(s.Context(), quota.Adjust{Credential: s.credential, ID: "taken",
		Bucket: "default", Units: -2, Limits: s.limits, Labels: quota.Labels{"by": "ops"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *subject) dry(units int64) quota.Charge {
	c := s.newCharge(units)
	c.DryRun = true
	return c
}

func (s *subject) check(repair bool) []quota.Finding {
	s.Helper()
	checker := s.ledger.(quota.Checker)
	found, err := checker.CheckBucket(s.Context(), s.credential, "default", repair)
	if err != nil {
		s.Error(err)
	}
	return found
}

func (s *subject) wantSound() {
	s.Helper()
	if found := s.check(false); len(found) > 0 {
		s.Errorf("found %+v", found)
	}
}

// wantRoom makes sure that so much is used and held, that the entries add up, and that the rest can
// be charged, and no more.
func (s *subject) wantRoom(used, held int64) {
	s.Helper()
	u, err := s.ledger.Usage(s.Context(), s.credential, s.limits)
	if err != nil || u.Buckets[0].Limits[0].Used != used || u.Buckets[0].Held != held {
		s.Errorf("%+v, %v; want %d used, %d held", u, err, used, held)
	}
	log := s.log("default")
	if _, err := s.ledger.Takings(s.Context(), quota.Query{Credential: s.credential,
		Bucket: "default"}); err != nil {
		s.Error(err)
	}
	var sum int64
	for i, e := range log {
		if sum += e.Units; i > 0 && e.Total != log[i-1].Total+e.Units {
			s.Errorf("entry %d of %+v does not follow", i, log)
		}
	}
	if sum != used {
		s.Errorf("the entries add up to %d units, and %d are used", sum, used)
	}
	s.wantSums("sums", time.Time{}, quota.AddUp(log)...)
	rest := dayLimit.Units - used - held
	if d := s.ask(s.dry(rest + 1)); d.Allowed {
		s.Errorf("%d units beside %d used and %d held: %+v", rest+1, used, held, d)
	}
	if rest > 0 {
		s.charge(rest)
	}
}

// testRepairWhileCharged: repairs and charges at once lose no entry, and leave sound books.
func testRepairWhileCharged(t *testing.T, s *subject) {
	s.h.Break(t, s.credential, MiddleDeleted)
	var all sync.WaitGroup
	var charged atomic.Int64
	for range 4 {
		all.Go(func() {
			for range 25 {
				if s.ask(s.newCharge(1)).Allowed {
					charged.Add(1)
				}
			}
		})
	}
	for range 5 {
		s.check(true)
	}
	all.Wait()
	s.check(true)
	s.wantSound()
	s.wantRoom(45+charged.Load(), 5)
}
