package quotatest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// testRetention: old entries and their sums are removed in a few steps, but no entry that counts. A
// limit whose window reaches back further reports the time from which it counts.
func testRetention(t *testing.T, h Harness) {
	s := newSubject(t, h, within(200, hours(24)))
	check := func(what string, least, most int) (list []quota.Entry) {
		t.Helper()
		list = s.log("default")
		sums, err := s.ledger.Sums(t.Context(), quota.SumQuery{Credential: s.credential,
			Bucket: "default"})
		if len(list) < least || len(list) > most || err != nil ||
			fmt.Sprint(sums) != fmt.Sprint(quota.AddUp(list)) {
			t.Errorf("%s: %d entries, want %d to %d; %v, sums %+v", what, len(list), least, most,
				err, sums)
		}
		return list
	}
	for i := range 100 {
		s.at(time.Duration(i) * time.Second)
		s.charge(1)
	}
	s.at(hours(40))
	middle, _ := s.charge(1)
	check("after 40 hours", 101, 101)
	limits := []quota.Limit{within(1000, hours(30*24)), within(1000, hours(72))}
	expectFrom := func(want time.Time) {
		t.Helper()
		u, err := s.ledger.Usage(t.Context(), s.credential, limits)
		must(t, err)
		long, short := u.Buckets[0].Limits[0].CountsFrom, u.Buckets[0].Limits[1].CountsFrom
		if !long.Equal(want) || !short.IsZero() {
			t.Errorf("30 days count from %s, want %s; 72 hours from %s", long, want, short)
		}
	}
	expectFrom(time.Time{})
	s.at(hours(80))
	s.charge(1)
	check("no more than 64 are trimmed in one step", 102-64, 102)
	s.charge(1)
	s.charge(1)
	list := check("in a few steps", 4, 4)
	expectFrom(list[0].At)
	if list[0].ID != middle.ID || list[0].Total != 101 || list[3].Total != 104 {
		t.Errorf("the log is %+v, want totals from 101 to 104", list)
	}
}

// testFarBack: every ledger cancels a charge, settles a lapse and corrects a span while at most
// MaxRewritten entries came after it.
func testFarBack(t *testing.T, h Harness) {
	s := newSubject(t, h, within(100_000, hours(24)))
	for _, id := range []string{"default.a", "default.b"} {
		r := s.newReserve(id, 30, time.Minute)
		r.Lapse = quota.LapseCharge
		if d, err := s.ledger.Reserve(t.Context(), r); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	s.at(time.Hour)
	tooFar, tooFarDecision := s.charge(1)
	last, lastDecision := s.charge(1)
	const callers = 100
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range quota.MaxRewritten / callers {
				s.charge(1)
			}
		})
	}
	all.Wait()
	want := func(what string, err error, want string) {
		t.Helper()
		if name := errorName(err); name != want {
			t.Errorf("%s: %q, want %q", what, name, want)
		}
	}
	settle := func(id string, units int64) error {
		_, err := s.ledger.Settle(t.Context(), quota.Settle{Credential: s.credential,
			Reservation: id, ID: "s-" + id[len(id)-1:], Limits: s.limits,
			Costs: []quota.Cost{{Bucket: "default", Units: units}}})
		return err
	}
	adjust := func(units int64, until time.Time) error {
		_, err := s.ledger.Adjust(t.Context(), quota.Adjust{Credential: s.credential,
			ID: quota.NewID(time.Now()), Bucket: "default", Units: units, Until: until,
			Limits: s.limits})
		return err
	}
	want("cancel with one entry too many after it", s.ledger.Cancel(t.Context(), tooFar,
		tooFarDecision), "no_entry")
	want("add with one entry too many after it", adjust(1, tooFarDecision.At), "no_entry")
	want("take off two with as many entries as may be after them", adjust(-2, lastDecision.At), "no_entry")
	want("settle late below the hold", settle("default.a", 20), "settled_late")
	want("settle late beyond the hold", settle("default.b", 40), "")
	want("take off one entry too many", adjust(-quota.MaxRewritten-11, time.Time{}), "no_entry")
	s.cancel(s.charge(1)) // the newest
	want("take off the settlement", adjust(-10, time.Time{}), "")
	want("cancel with as many entries as may be after it", s.ledger.Cancel(t.Context(), last, lastDecision), "")
	want("take off one with as many entries as may be after it", adjust(-1, tooFarDecision.At), "no_entry")
	want("take off as many entries as may be", adjust(-quota.MaxRewritten, time.Time{}), "")
	want("take off the one before them", adjust(-1, tooFarDecision.At), "")
	if list := s.log("default"); len(list) != 2 || s.used(s.limits...)[0] != 60 {
		t.Errorf("%d entries are left, want those of the lapses", len(list))
	}
}

// testNewRate: the first charge under a new rate is decided by the whole log, however long, in
// steps that each read a bounded number of entries. A denial writes nothing.
func testNewRate(t *testing.T, h Harness) {
	const entries, each = 25_000, 1000
	s := newSubject(t, h, quota.Limit{Bucket: "default", Units: entries - 3600,
		Window: window(t, "restoring 1/1s")})
	s.at(time.Hour)
	scope := quota.Scope{Credential: s.credential, Buckets: []string{"default"}}
	for first := int64(1); first <= entries; first += each {
		var change quota.BucketChange
		for n := first; n < first+each; n++ {
			change.Append = append(change.Append, quota.LogEntry{At: epoch.UnixMicro() + n,
				ID: fmt.Sprint("e", n), Units: 1, Total: n})
		}
		must(t, s.ledger.Update(t.Context(), scope, func(*quota.Account) (quota.Change, error) {
			return quota.Change{Buckets: []quota.BucketChange{change}}, nil
		}))
	}
	dump := func() string {
		if h.Dump == nil {
			return ""
		}
		return h.Dump(t, s.credential)
	}
	before := dump()
	store := &countingStore{Store: s.ledger.Store}
	s.ledger.Store = store
	if d, err := s.ledger.Charge(t.Context(), s.newCharge(1)); err != nil || d.Allowed {
		t.Errorf("one unit too many: %+v, %v", d, err)
	}
	if want := []int{10_000, 10_000, 5_000}; !slices.Equal(store.reads, want) {
		t.Errorf("the steps read %d entries, want %d", store.reads, want)
	}
	if dump() != before {
		t.Error("the denial changed the store")
	}
	s.limits[0].Units = entries
	if _, d := s.charge(1); d.Remaining["default"] != 3600-1-1 {
		t.Errorf("%d remain", d.Remaining["default"])
	}
}

// countingStore counts the entries that each decision reads.
type countingStore struct {
	ledger.Store
	reads []int
}

func (c *countingStore) Update(ctx context.Context, scope quota.Scope,
	decide func(*quota.Account) (quota.Change, error)) error {
	return c.Store.Update(ctx, scope, func(a *quota.Account) (quota.Change, error) {
		c.reads = append(c.reads, 0)
		log := a.Buckets[0].Log
		a.Buckets[0].Log = countingLog{log, &c.reads[len(c.reads)-1]}
		defer func() { a.Buckets[0].Log = log }()
		return decide(a)
	})
}

type countingLog struct {
	quota.Log
	read *int
}

func (l countingLog) Since(after int64, limit int) ([]quota.LogEntry, error) {
	entries, err := l.Log.Since(after, limit)
	*l.read += len(entries)
	return entries, err
}

// testManyHolds: the units held by 700 reservations are exact while they are open, while they
// expire in turn, and after more have expired than one call may remove.
func testManyHolds(t *testing.T, h Harness) {
	s := newStory(t, t, h, h.Open(t))
	limits := []quota.Limit{within(5000, hours(24)), within(4950, hours(48))}
	s.limits["default"] = limits
	hold := func(n int) Call {
		return Call{Reserve: &quota.Reserve{
			Credential: s.credential, ID: fmt.Sprintf("default.r%04d", n), Limits: limits,
			Costs: []quota.Cost{{Bucket: "default", Units: int64(1 + n%3)}},
			TTL:   time.Hour + time.Duration(n%50)*time.Minute,
		}}
	}
	var all sync.WaitGroup
	for worker := range 50 { // the order does not matter, because the clock does not advance
		all.Go(func() {
			for i := worker; i < 700; i += 50 {
				if d, err := hold(i).ask(t.Context(), s.ledger); err != nil || !d.Allowed {
					t.Errorf("reservation %d: %+v, %v", i, d, err)
				}
			}
		})
	}
	all.Wait()
	for i := range 700 {
		if d, err := s.model.ask(hold(i)); err != nil || !d.Allowed {
			t.Errorf("reservation %d of the model: %+v, %v", i, d, err)
		}
	}
	charge := func(units int64, dry bool) {
		c := Call{Charge: quota.Charge{Credential: s.credential, ID: s.id(), Limits: limits,
			DryRun: dry, Costs: []quota.Cost{{Bucket: "default", Units: units}}}}
		s.decide(c)
	}
	charge(3500, false)
	for _, after := range []time.Duration{0, 84*time.Minute + 59*time.Second, 85 * time.Minute,
		hours(3), hours(3), hours(3)} {
		s.setNow(epoch.Add(after))
		for _, units := range []int64{1, 51, 150, 1000, 3000, 4950} {
			charge(units, true)
		}
		s.compareBucket("default")
		charge(1, false)
	}
}

// testMark: every change of a bucket changes its mark, also through another handle; reading does
// not.
func testMark(t *testing.T, h Harness) {
	s := newSubject(t, h, dayLimit)
	watcher := h.Open(t)
	before := ""
	changed := func(what string, want bool) {
		t.Helper()
		mark, err := watcher.Mark(t.Context(), s.credential, []string{"default", "search_list"})
		if err != nil || (mark != before) != want {
			t.Errorf("%s: the mark is %q, before %q, %v", what, mark, before, err)
		}
		before = mark
	}
	changed("the first", true)
	c, d := s.charge(3)
	changed("a charge", true)
	s.log("default")
	s.used(dayLimit)
	changed("readings", false)
	s.cancel(c, d)
	changed("a cancelled charge", true)
	s.cancel(s.charge(3))
	changed("a charge and its end", true)
	s.reserve("default.r", 5, time.Minute)
	changed("a reservation", true)
	_, err := s.ledger.Release(t.Context(), quota.Release{Credential: s.credential,
		Reservation: "default.r"})
	if err != nil {
		t.Error(err)
	}
	changed("its release", true)
	if err := s.ledger.Suspend(t.Context(), quota.Suspension{Credential: s.credential,
		Bucket: "search_list", Until: epoch.Add(time.Hour)}); err != nil {
		t.Error(err)
	}
	changed("a suspension", true)
	changed("nothing", false)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := s.ledger.Charge(gone, s.newCharge(1)); err == nil || d.Allowed {
		t.Errorf("charge in a cancelled context: %+v, %v", d, err)
	}
	changed("a charge in a cancelled context", false)
}

// testDenials: denials of two processes add up by hour, limit and labels without the run. A day has
// at most MaxDenials rows, which are kept for DenialTime.
func testDenials(t *testing.T, h Harness) {
	s := newSubject(t, h, dayLimit)
	start := epoch.Truncate(hours(24)).Add(hours(34)) // ten o'clock of the next day
	deny := func(l *ledger.Ledger, at time.Time, job, run string, count int64) {
		h.SetNow(t, at)
		l.Denied(s.credential, quota.Denial{Bucket: "default", Limit: "l", Count: count,
			Units: 5 * count, Labels: quota.Labels{"job": job, "run": run}, LastAt: at})
		l.Flush(time.Minute)
	}
	read := func(since time.Time) (rows []string) {
		all, err := s.ledger.Denials(t.Context(), s.credential, since)
		must(t, err)
		for _, d := range all {
			rows = append(rows, fmt.Sprintf("%s %s %s %s %d %d %s", d.Hour.Format("15h"), d.Bucket,
				d.Limit, d.Labels.Encode(), d.Count, d.Units, d.LastAt.Format("15:04")))
		}
		return rows
	}
	other := h.Open(t)
	deny(s.ledger, start, "a", "r1", 1)
	deny(other, start.Add(time.Minute), "a", "r2", 2)
	deny(other, start.Add(time.Minute), "b", "", 1)
	deny(other, start.Add(time.Hour), "a", "", 1)
	want := []string{"10h default l job=a 3 15 10:01", "10h default l job=b 1 5 10:01",
		"11h default l job=a 1 5 11:00"}
	if got := read(start); !slices.Equal(got, want) {
		t.Errorf("denials\n%q, want\n%q", got, want)
	}
	if got := read(start.Add(time.Hour)); !slices.Equal(got, want[2:]) {
		t.Errorf("denials of the last hour %q", got)
	}
	for i := range quota.MaxDenials + 10 {
		s.ledger.Denied(s.credential, quota.Denial{Bucket: "default", Limit: "l", Count: 1, Units: 1,
			Labels: quota.Labels{"job": fmt.Sprint("made-up-", i)}, LastAt: start})
	}
	s.ledger.Flush(time.Minute)
	if got := read(start); len(got) > quota.MaxDenials+2 || len(got) < quota.MaxDenials {
		t.Errorf("%d rows are kept", len(got))
	}
	deny(other, start.Add(quota.DenialTime+hours(2)), "late", "", 1)
	if got := read(time.Time{}); len(got) != 1 {
		t.Errorf("%d rows are kept for ever", len(got))
	}
}
