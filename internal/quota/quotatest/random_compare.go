package quotatest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// both passes a request to the ledger and to the model, compares the answers, and returns the
// ledger's. It also checks invariant I7: an error, a denial and a dry run change nothing.
func both[Q, A any](s *story, ledger func(context.Context, Q) (A, error),
	model func(Q) (A, error), request Q) (A, error) {
	s.tb.Helper()
	want, wantErr := model(request)
	before := s.dump()
	got, err := ledger(s.outer.Context(), request)
	text := fmt.Sprintf("%T %+v", request, request)
	s.same(text+": error", errorName(err), errorName(wantErr))
	changes := wantErr == nil
	if d, ok := any(&got).(*quota.Decision); ok {
		s.equate(d, any(want).(quota.Decision))
		c, _ := any(request).(Call)
		changes = d.Allowed && !c.Charge.DryRun
	}
	if wantErr == nil || errors.Is(wantErr, quota.ErrCostExceedsLimit) {
		s.same(text, got, want)
	}
	if !changes {
		s.same("the store after "+text, s.dump(), before)
	}
	return got, err
}

// dump returns everything in the store, if the harness has Dump and no lapse may have been written.
func (s *story) dump() string {
	if s.h.Dump == nil || s.lapses || !s.dumps {
		return ""
	}
	return s.h.Dump(s.outer, s.credential)
}

// equate replaces the limit of a denial with the model's if both are correct. Holds that lapse
// together become entries with different stamps, so two limits may allow the cost at the same clock
// time but at different moments.
func (s *story) equate(d *quota.Decision, want quota.Decision) {
	if s.lapses && d.Limit != "" && want.Limit != "" && d.RetryAt.Equal(want.RetryAt) {
		s.parted = s.parted || d.Observed && d.Limit != want.Limit
		d.Limit = want.Limit
	}
}

// same compares the printed forms of both: a nil map equals an empty one.
func (s *story) same(what string, got, want any) {
	s.tb.Helper()
	if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
		at := s.clock.Now().Format(time.RFC3339Nano)
		s.tb.Fatalf("at %s: %s:\n got %s\nwant %s", at, what, a, b)
	}
}

// comparePicture compares the usage of all buckets at one moment. A boundary may lie between the
// newest entries of two buckets.
func (s *story) comparePicture() {
	var limits []quota.Limit
	for _, b := range storyBuckets {
		limits = append(limits, s.limits[b]...)
	}
	s.compareUsage(limits)
	now, err := s.ledger.Time(s.outer.Context())
	if err != nil || !now.Equal(s.clock.Now()) {
		s.tb.Fatalf("time: %s, %v, want %s", now, err, s.clock.Now())
	}
}

func (s *story) compareUsage(limits []quota.Limit) {
	s.tb.Helper()
	both(s, func(ctx context.Context, limits []quota.Limit) (quota.Usage, error) {
		u, err := s.ledger.Usage(ctx, s.credential, limits)
		for i := range u.Buckets {
			u.Buckets[i].SuspendedBy, u.Buckets[i].Reason = "", ""
			for j := range u.Buckets[i].Limits { // depends on how many entries were trimmed
				u.Buckets[i].Limits[j].CountsFrom = time.Time{}
			}
		}
		return u, err
	}, s.model.Usage, limits)
}

func (s *story) compareBucket(b string) {
	ctx := s.outer.Context()
	s.compareUsage(s.limits[b])
	both(s, func(ctx context.Context, b string) ([]quota.Reservation, error) {
		return s.ledger.Reservations(ctx, s.credential, b)
	}, s.model.Reservations, b)
	// Ledger and model may trim older entries at different times.
	since := s.clock.Now().Add(-hours(48))
	entries, takings := s.model.log(b, since)
	all := s.log(b)
	var newer []quota.Entry // without totals, which may begin at any number
	for i, e := range all {
		if i > 0 && e.Total != all[i-1].Total+e.Units {
			s.tb.Fatalf("entry %d of %s is %+v after %+v", i, b, e, all[i-1])
		}
		if e.Total = 0; e.At.After(since) {
			newer = append(newer, e)
		}
	}
	s.same("entries of "+b, newer, entries)
	got, err := s.ledger.Takings(ctx, quota.Query{Credential: s.credential, Bucket: b, Since: since})
	for _, list := range [][]quota.Entry{got, takings} { // the order at one time is undefined
		slices.SortFunc(list, func(x, y quota.Entry) int {
			return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.ID, y.ID))
		})
	}
	s.same("takings of "+b, got, takings)
	must(s.tb, err)

	sums, err := s.ledger.Sums(ctx, quota.SumQuery{Credential: s.credential, Bucket: b})
	s.same("sums of "+b, sums, quota.AddUp(all))
	must(s.tb, err)
	to := s.clock.Now()
	model, _ := s.model.at(s.model.now(), b)
	for _, after := range []time.Duration{time.Minute, hours(5), hours(47)} {
		got, err := s.ledger.Between(ctx, s.credential, b, to.Add(-after), to)
		want := model[0].sum(to.Add(-after).UnixMicro(), to.UnixMicro())
		s.same(fmt.Sprintf("units of %s in the last %s", b, after), got, want)
		must(s.tb, err)
		to = to.Add(-after / 3)
	}
	// A check must never find anything, because a finding would deny charges.
	found, err := s.ledger.Check(ctx, s.credential, b, false)
	s.same("check of "+b, found, []quota.Finding{})
	must(s.tb, err)
}

func (s *story) log(bucket string) []quota.Entry {
	q := quota.Query{Credential: s.credential, Bucket: bucket}
	entries, err := s.ledger.Entries(s.outer.Context(), q)
	must(s.tb, err)
	return entries
}

// checkWindows checks invariant I2 by brute force on the ledger's own log: at the stamp of every
// allowed charge, each of its windows has no more units than the limit.
func (s *story) checkWindows() {
	for _, name := range storyBuckets {
		var b bucket
		for _, e := range s.log(name) {
			b.items = append(b.items, item{at: e.At.UnixMicro(), units: e.Units})
		}
		for _, p := range s.proofs {
			for _, l := range quota.LimitsOf(name, p.charge.Limits) {
				if l.Window.Anchored || l.Window.IsRestoring() || l.Pace != nil {
					continue // compared with the model at every step
				}
				at := p.decision.At.UnixMicro()
				if sum := b.sum(b.since(l.Window, at)-1, at); sum > l.Units {
					s.tb.Fatalf("I2: %d units in %+v at %s:\n%+v", sum, l, p.decision.At, b.items)
				}
			}
		}
	}
}
