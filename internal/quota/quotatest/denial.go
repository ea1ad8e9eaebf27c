package quotatest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// both are costs of two buckets, whose limits are dayLimit and searchLimit.
func both(units, searches int64) []quota.Cost {
	return []quota.Cost{{Bucket: "default", Units: units}, {Bucket: "search_list", Units: searches}}
}

var twoLimits = []quota.Limit{dayLimit, searchLimit}

// testDenialChangesNothing is the invariant I7: whatever is refused leaves the store as it was.
func testDenialChangesNothing(t *testing.T, h Harness) {
	ctx, s := context.Background(), newSubject(t, h, dayLimit)
	l := s.ledger
	first := s.newCharge(60)
	first.Key, first.Labels = "k", quota.Labels{"job": "sweep"}
	first.Costs, first.Limits = both(60, 2), twoLimits
	s.must(first)
	second, allowed := s.charge(1)
	s.reserve("default.r", 30, time.Hour)
	change := func(units int64, f func(*quota.Charge)) func() (quota.Decision, error) {
		c := s.newCharge(units)
		c.Labels = quota.Labels{"job": "never seen before"}
		f(&c)
		return func() (quota.Decision, error) { return l.Charge(ctx, c) }
	}
	reserve := func(r quota.Reserve) func() (quota.Decision, error) {
		return func() (quota.Decision, error) { return l.Reserve(ctx, r) }
	}
	commit := func(id string, units int64) func() (quota.Decision, error) {
		return func() (quota.Decision, error) {
			c := quota.Settle{Credential: s.credential, Reservation: id, ID: "y", Within: true,
				Costs: []quota.Cost{{Bucket: "default", Units: units}}}
			return l.Settle(ctx, c)
		}
	}
	oneOfTwo := func(c *quota.Charge) { c.Costs, c.Limits = both(1, 1), twoLimits }
	keyed := s.newReserve("default.s", 10, time.Hour)
	keyed.Key = "n"
	for name, ask := range map[string]func() (quota.Decision, error){
		"too much":       change(10, func(*quota.Charge) {}),
		"with a key":     change(10, func(c *quota.Charge) { c.Key = "new" }),
		"one of two":     change(1, oneOfTwo),
		"never":          change(101, func(*quota.Charge) {}),
		"key reused":     change(10, func(c *quota.Charge) { c.Key = "k" }),
		"no reservation": change(10, func(c *quota.Charge) { c.Reservation = "default.unknown" }),
		"short":          change(31, func(c *quota.Charge) { c.Reservation = "default.r" }),

		"reservation":     reserve(keyed),
		"same again":      reserve(s.newReserve("default.r", 1, time.Hour)),
		"commit unknown":  commit("default.q", 1),
		"commit too much": commit("default.r", 31),
		"release unknown": func() (quota.Decision, error) {
			_, err := l.Release(ctx, s.credential, "default.q")
			return quota.Decision{}, err
		},
		"extend unknown": func() (quota.Decision, error) {
			_, err := l.Extend(ctx, s.newExtend("default.q", time.Hour))
			return quota.Decision{}, err
		},
		"cancel unknown": func() (quota.Decision, error) {
			c := second
			oneOfTwo(&c)
			return quota.Decision{}, l.Cancel(ctx, c, allowed) // is in one of the buckets only
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.picture()
			d, err := ask()
			if d.Allowed || (err == nil) == (d.RetryAt.IsZero()) {
				t.Errorf("not refused: %+v, %v", d, err)
			}
			if after := s.picture(); after != before {
				t.Errorf("it changed the store\nfrom %s\nto   %s", before, after)
			}
		})
	}
}

// picture is all that can be seen of a credential: by the ledger's own words, and in the store if
// the harness can.
func (s *subject) picture() (text string) {
	s.Helper()
	for _, limit := range twoLimits {
		usage, err := s.ledger.Usage(s.Context(), s.credential, []quota.Limit{limit})
		held, err2 := s.ledger.Reservations(s.Context(), s.credential, limit.Bucket)
		if err != nil || err2 != nil {
			s.Fatal(err, err2)
		}
		text += fmt.Sprintf("%+v\n%+v\n%+v\n", usage, held, s.log(limit.Bucket))
	}
	if s.h.Dump != nil {
		text += s.h.Dump(s, s.credential)
	}
	return text
}

// testRetention: many old entries go in a few steps, and none that counts goes.
func testRetention(t *testing.T, h Harness) {
	s := newSubject(t, h, within(200, hours(24)))
	log := func() []quota.Entry { return s.log("default") }
	for range 100 {
		s.charge(1)
	}
	s.at(hours(40))
	middle, _ := s.charge(1)
	if n := len(log()); n != 101 {
		t.Errorf("%d entries after 40 hours, want all 101", n)
	}
	s.at(hours(80))
	s.charge(1)
	if n := len(log()); n < 102-64 {
		t.Errorf("%d entries after one charge: more than 64 were trimmed in one step", n)
	}
	s.charge(1)
	s.charge(1)
	list := log()
	if len(list) != 4 || list[0].ID != middle.ID || list[0].Total != 101 || list[3].Total != 104 {
		t.Errorf("the log is %+v, want four entries with totals from 101 to 104", list)
	}
	edge := newSubject(t, h, dayLimit)
	for _, after := range []time.Duration{0, hours(3), hours(3) + time.Microsecond} {
		edge.at(after)
		edge.charge(1)
	}
	edge.at(hours(3) + quota.Retention)
	edge.charge(1)
	kept := func(e quota.Entry) bool { return e.At.Equal(epoch.Add(hours(3) + time.Microsecond)) }
	if list := edge.log("default"); !slices.ContainsFunc(list, kept) {
		t.Errorf("the log is %+v: an entry went a microsecond early", list)
	}
}

// testRefusals: what no ledger takes is refused before anything is decided.
func testRefusals(t *testing.T, h Harness) {
	ctx, s := context.Background(), newSubject(t, h, dayLimit)
	c := s.newCharge(1)
	c.Reservation = "-"
	if d, err := s.ledger.Charge(ctx, c); errorName(err) != "malformed" || d.Allowed {
		t.Errorf("%+v, %v; want malformed", d, err)
	}
	if _, err := s.ledger.Release(ctx, s.credential, "no-dot"); errorName(err) != "malformed" {
		t.Errorf("release of a malformed reservation: %v", err)
	}
	for _, e := range []quota.Extend{s.newExtend("no-dot", time.Hour), s.newExtend("default.r", 0),
		s.newExtend("default.r", quota.MaxWindow+1), {Reservation: "default.r", TTL: time.Hour}} {
		if _, err := s.ledger.Extend(ctx, e); errorName(err) != "malformed" {
			t.Errorf("%+v: %v", e, err)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, memory := s.ledger.(*Model); !memory {
		if d, err := s.ledger.Charge(gone, s.newCharge(1)); err == nil || d.Allowed {
			t.Errorf("charge in a cancelled context: %+v, %v", d, err)
		}
	}
	if list := s.log("default"); len(list) != 0 {
		t.Errorf("the log is %v; want it empty", list)
	}
}

// testDryRun: the answer is that of the charge, word for word but for its entry, and nothing at all
// is written.
func testDryRun(t *testing.T, h Harness) {
	s := newSubject(t, h, dayLimit)
	def := func(units int64) []quota.Cost { return both(units, 0)[:1] }
	for i, c := range []quota.Charge{
		{ID: "first", Costs: def(10)}, // of a credential that is new
		{ID: "two", Costs: both(5, 2)},
		{ID: "denied", Costs: both(5, 1)},
		{ID: "observed", Costs: both(5, 1), Observe: true},
		{ID: "key", Costs: def(7), Key: "k"},
		{ID: "known", Costs: def(7), Key: "k"},
		{ID: "reused", Costs: def(8), Key: "k"},
		{ID: "never", Costs: def(101)},
		{ID: "drawn", Costs: def(4), Reservation: "default.r"},
		{ID: "short", Costs: def(40), Reservation: "default.r"},
		{ID: "full", Costs: def(40)},
		{ID: "over", Costs: def(14)},
	} {
		s.at(time.Duration(i) * time.Minute)
		if c.ID == "drawn" {
			s.reserve("default.r", 20, time.Hour)
		}
		c.Credential, c.Limits = s.credential, twoLimits[:len(c.Costs)]
		c.Labels = quota.Labels{"job": "never seen before " + c.ID}
		before := s.picture()
		dry := c
		dry.DryRun = true
		got, gotErr := s.ledger.Charge(t.Context(), dry)
		if after := s.picture(); after != before {
			t.Errorf("%s: the dry run changed the store\nfrom %s\nto   %s", c.ID, before, after)
		}
		if got.Entry != "" && !got.Replayed {
			t.Errorf("%s: the dry run names an entry: %+v", c.ID, got)
		}
		want, wantErr := s.ledger.Charge(t.Context(), c)
		if !got.Replayed {
			want.Entry = ""
		}
		if !sameDecision(got, want) || errorName(gotErr) != errorName(wantErr) {
			t.Errorf("%s:\ndry run %+v, %v\n charge %+v, %v", c.ID, got, gotErr, want, wantErr)
		}
	}
	b := &quota.Budget{Ledger: s.ledger, Credential: s.credential, Limits: twoLimits}
	d, cancel, err := b.Spend(t.Context(), quota.Call{Units: 1, DryRun: true})
	if err != nil || !d.Allowed {
		t.Fatalf("spend: %+v, %v", d, err)
	}
	if err := cancel(t.Context()); err != nil {
		t.Errorf("there was nothing to take back: %v", err)
	}
	log := s.log("default")
	if len(log) != 6 {
		t.Fatalf("%d entries, want 6: %+v", len(log), log)
	}
	for _, e := range log {
		if want := "never seen before " + e.ID; e.Labels["job"] != want {
			t.Errorf("entry %s lost its labels after a dry run with the same: %v", e.ID, e.Labels)
		}
	}
}
