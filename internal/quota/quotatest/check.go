package quotatest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	{
		NewestDeleted,
		60,
		false,
	}, {MiddleDeleted, 45, true}, {AllDeleted, 0, false}, {StateTooHigh, 65, false}, {StateTooLow, 65, false},
	{
		TotalTooHigh,
		65,
		false,
	}, {UnitsUnread, 65, false}, {LabelsUnread, 65, true}, {SumTooLow, 65, true}, {HoldUnreadable, 65, false},
	{HeldTooHigh, 65, true},
}

// testCheck: what was done by hand denies, or makes no room; a check finds it, and a repair makes
// of it what the entries say.
func testCheck(t *testing.T, h Harness) {
	l := h.Open(t)
	checker, ok := l.(quota.Checker)
	if !ok {
		return // it is one that nobody can lay hands on
	}
	h.SetNow(t, epoch)
	for _, c := range damages {
		t.Run(strings.ReplaceAll(string(c.how), " ", "_"), func(t *testing.T) {
			s := damaged{t, l, checker, newCredential()}
			s.fill()
			if found := s.check(false); len(found) > 0 {
				t.Fatalf("before: %+v", found)
			}
			h.Break(t, s.credential, c.how)
			d, err := s.charge(31, true) // 65 are used and 5 held
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
			if found := s.check(false); len(found) > 0 {
				t.Errorf("found after it was mended: %+v", found)
			}
			held := int64(5)
			if c.how == HoldUnreadable {
				held = 0
			}
			s.holds(c.used, held)
		})
	}
	t.Run("Buckets", func(t *testing.T) {
		s := damaged{t, l, checker, newCredential()}
		if names, err := checker.BucketsOf(context.Background(), s.credential); err != nil ||
			len(names) != 0 {
			t.Errorf("%q, %v", names, err)
		}
		s.fill()
		if err := l.Suspend(context.Background(), s.credential, "closed", epoch.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if names, err := checker.BucketsOf(context.Background(), s.credential); err != nil ||
			fmt.Sprint(names) != "[closed default]" {
			t.Errorf("%q, %v", names, err)
		}
	})
	t.Run(
		"WhileCharged",
		func(t *testing.T) { testRepairWhileCharged(t, h, damaged{t, l, checker, newCredential()}) },
	)
}

// damaged is a bucket on its way through damage and repair.
type damaged struct {
	t          *testing.T
	ledger     quota.Ledger
	checker    quota.Checker
	credential string
}

func (s damaged) fill() {
	s.t.Helper()
	r := quota.Reserve{
		Credential: s.credential,
		ID:         "default.r",
		Units:      5,
		TTL:        time.Hour,
		Limits:     []quota.Limit{dayLimit},
	}
	if d, err := s.ledger.Reserve(context.Background(), r); err != nil || !d.Allowed {
		s.t.Fatal(d, err)
	}
	for _, units := range []int64{10, 20, 30, 5} {
		if d, err := s.charge(units, false); err != nil || !d.Allowed {
			s.t.Fatal(d, err)
		}
	}
}

func (s damaged) charge(units int64, dry bool) (quota.Decision, error) {
	return s.ledger.Charge(context.Background(), quota.Charge{
		Credential: s.credential, ID: quota.NewID(time.Now()), Costs: []quota.Cost{{Bucket: "default", Units: units}},
		Limits: []quota.Limit{dayLimit}, Labels: quota.Labels{"job": "sweep"}, DryRun: dry,
	})
}

func (s damaged) check(repair bool) []quota.Finding {
	s.t.Helper()
	found, err := s.checker.CheckBucket(context.Background(), s.credential, "default", repair)
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// holds makes sure that so much is used and held, that the entries add up, and that the rest can be
// charged, and no more.
func (s damaged) holds(used, held int64) {
	s.t.Helper()
	u, err := s.ledger.Usage(context.Background(), s.credential, []quota.Limit{dayLimit})
	if err != nil || u.Buckets[0].Limits[0].Used != used || u.Buckets[0].Held != held {
		s.t.Errorf("%+v, %v; want %d used, %d held", u, err, used, held)
	}
	log, err := s.ledger.Entries(
		context.Background(),
		quota.Query{Credential: s.credential, Bucket: "default"},
	)
	if err != nil {
		s.t.Fatal(err)
	}
	var sum int64
	for i, e := range log {
		if sum += e.Units; i > 0 && e.Total != log[i-1].Total+e.Units {
			s.t.Errorf("entry %d of %+v does not follow", i, log)
		}
	}
	if sum != used {
		s.t.Errorf("the entries add up to %d units, and %d are used", sum, used)
	}
	sums, err := s.ledger.Sums(
		context.Background(),
		quota.SumQuery{Credential: s.credential, Bucket: "default"},
	)
	if want := quota.AddUp(log); err != nil || sumsText(sums) != sumsText(want) {
		s.t.Errorf("sums: %v\n%swant:\n%s", err, sumsText(sums), sumsText(want))
	}
	rest := dayLimit.Units - used - held
	if d, err := s.charge(rest+1, true); err != nil || d.Allowed {
		s.t.Errorf("%d units beside %d used and %d held: %+v, %v", rest+1, used, held, d, err)
	}
	if rest == 0 {
		return
	}
	if d, err := s.charge(rest, false); err != nil || !d.Allowed {
		s.t.Errorf("%d units beside %d used and %d held: %+v, %v", rest, used, held, d, err)
	}
}

// testRepairWhileCharged: repairs and charges at once lose no entry, and leave sound books.
func testRepairWhileCharged(t *testing.T, h Harness, s damaged) {
	s.fill()
	h.Break(t, s.credential, MiddleDeleted)
	var all sync.WaitGroup
	charged := make([]int64, 4)
	for i := range charged {
		all.Go(func() {
			for range 25 {
				d, err := s.charge(1, false)
				if err != nil {
					t.Error(err)
				}
				if d.Allowed {
					charged[i]++
				}
			}
		})
	}
	for range 5 {
		if _, err := s.checker.CheckBucket(context.Background(), s.credential, "default", true); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	s.check(true)
	var sum int64
	for _, n := range charged {
		sum += n
	}
	if found := s.check(false); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
	s.holds(45+sum, 5)
}
