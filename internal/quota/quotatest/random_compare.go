package quotatest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
)

// pair is a ledger and the model, to which the same is done.
type pair struct {
	outer      testing.TB // the clock and the store belong to the whole test
	tb         rapid.TB   // what fails
	h          Harness
	ledger     quota.Ledger
	model      *Model
	clock      Clock
	credential string
	limits     map[string][]quota.Limit // by bucket
	serial     int
	lapses     bool // holds that become entries were made
	parted     bool // a coarse ledger has named another limit in an entry: the story ends
}

func newPair(outer testing.TB, tb rapid.TB, h Harness, l quota.Ledger) *pair {
	p := &pair{outer: outer, tb: tb, h: h, ledger: l, credential: newCredential(),
		limits: map[string][]quota.Limit{}}
	p.model = &Model{Now: p.clock.Now, looks: h.Coarse}
	p.setNow(epoch)
	return p
}

func (p *pair) setNow(now time.Time) {
	p.clock.Set(p.outer, now)
	p.h.SetNow(p.outer, now)
}

func (p *pair) id() string { p.serial++; return fmt.Sprintf("e%04d", p.serial) }

func (p *pair) compareCharge(c quota.Charge) quota.Decision {
	p.tb.Helper()
	want, wantErr := p.model.Charge(context.Background(), c)
	got, err := p.ledger.Charge(context.Background(), c)
	p.compareDecision(fmt.Sprintf("charge %+v", c), got, want, err, wantErr)
	return got
}

func (p *pair) compareError(what string, got, want error) {
	p.tb.Helper()
	p.same(what+": error", errorName(got), errorName(want), nil)
}

func (p *pair) compareDecision(what string, got, want quota.Decision, err, wantErr error) {
	p.tb.Helper()
	p.compareError(what, err, wantErr)
	if p.h.Coarse && p.lapses && got.Limit != "" && want.Limit != "" {
		p.parted = p.parted || got.Observed && got.Limit != want.Limit
		got.RetryAt, got.Limit = want.RetryAt, want.Limit
	}
	decided := errors.Is(wantErr, quota.ErrCostExceedsLimit) == (wantErr != nil)
	if decided && !sameDecision(got, want) {
		p.same(what, got, want, nil)
	}
}

// sameDecision compares every field; no map is as good as an empty one.
func sameDecision(a, b quota.Decision) bool {
	same := maps.Equal(a.Units, b.Units) && maps.Equal(a.Remaining, b.Remaining)
	a.Units, a.Remaining = b.Units, b.Remaining
	return same && reflect.DeepEqual(a, b)
}

func (s *story) compareOne() {
	s.compareBucket(s.bucket())
	s.comparePicture()
}

func (s *story) compareAll() {
	for _, b := range storyBuckets {
		s.compareBucket(b)
	}
	s.comparePicture()
	s.checkTime()
}

// comparePicture looks at all buckets at once, whose newest entries may lie on two sides of any
// boundary.
func (s *story) comparePicture() {
	var limits []quota.Limit
	for _, b := range storyBuckets {
		limits = append(limits, s.limits[b]...)
	}
	want, _ := s.model.Usage(context.Background(), s.credential, limits)
	got, err := s.ledger.Usage(context.Background(), s.credential, limits)
	s.same("usage of all", s.exact(got), s.exact(want), err)
}

// exact is the usage without what a coarse ledger cannot say.
func (s *pair) exact(u quota.Usage) quota.Usage {
	for i := range u.Buckets {
		for j := range u.Buckets[i].Limits {
			if s.h.Coarse && s.lapses {
				u.Buckets[i].Limits[j].NextFreeAt = time.Time{}
			}
		}
	}
	return u
}

func (s *pair) compareBucket(b string) {
	ctx := context.Background()
	want, _ := s.model.Usage(ctx, s.credential, s.limits[b])
	got, err := s.ledger.Usage(ctx, s.credential, s.limits[b])
	s.same("usage of "+b, s.exact(got), s.exact(want), err)

	wantHeld, _ := s.model.Reservations(ctx, s.credential, b)
	held, err := s.ledger.Reservations(ctx, s.credential, b)
	s.same("reservations of "+b, held, wantHeld, err)

	// Older entries may be trimmed by one and not yet by the other.
	q := quota.Query{Credential: s.credential, Bucket: b, Since: s.clock.Now().Add(-hours(48))}
	wantLog, _ := s.model.Entries(ctx, q)
	log, err := s.ledger.Entries(ctx, q)
	s.same("entries of "+b, counted(log), counted(wantLog), err)

	s.compareTakings(b, q.Since)
	s.compareSums(b, q.Since)

	// Whatever has happened, a check finds nothing: what it found would deny charges.
	if checker, ok := s.ledger.(quota.Checker); ok {
		found, err := checker.CheckBucket(ctx, s.credential, b, false)
		s.same("check of "+b, append([]quota.Finding{}, found...), []quota.Finding{}, err)
	}
}

// compareSums holds the sums of a bucket against the model's, and against the ledger's own entries,
// of which another number may be trimmed.
func (s *pair) compareSums(b string, since time.Time) {
	ctx := context.Background()
	q := quota.SumQuery{Credential: s.credential, Bucket: b, Since: since}
	want, _ := s.model.Sums(ctx, q)
	got, err := s.ledger.Sums(ctx, q)
	s.same("sums of "+b, sumsText(got), sumsText(want), err)

	q.Since = time.Time{}
	log, err := s.ledger.Entries(ctx, quota.Query{Credential: s.credential, Bucket: b})
	if err != nil {
		s.tb.Fatal(err)
	}
	got, err = s.ledger.Sums(ctx, q)
	s.same("all sums of "+b, sumsText(got), sumsText(quota.AddUp(log)), err)

	to := s.clock.Now()
	for _, after := range []time.Duration{time.Minute, hours(5), hours(47)} {
		want, _ := s.model.Between(ctx, s.credential, b, to.Add(-after), to)
		got, err := s.ledger.Between(ctx, s.credential, b, to.Add(-after), to)
		s.same(fmt.Sprintf("units of %s in the last %s", b, after), got, want, err)
		to = to.Add(-after / 3)
	}
}

func (s *pair) same(what string, got, want any, err error) {
	s.tb.Helper()
	if err != nil {
		s.tb.Fatalf("%s: %v", what, err)
	}
	if !reflect.DeepEqual(got, want) {
		at := s.clock.Now().Format(time.RFC3339Nano)
		s.tb.Fatalf("at %s: %s:\n got %+v\nwant %+v", at, what, got, want)
	}
}

func (s *story) checkTime() {
	now, err := s.ledger.Time(context.Background())
	if err != nil || !now.Equal(s.clock.Now()) {
		s.t.Fatalf("time: %s, %v, want %s", now, err, s.clock.Now())
	}
}

// checkWindows is the invariant I2 by brute force, on the ledger's own log: at the stamp of every
// allowed charge, each of its windows held no more than the limit.
func (s *story) checkWindows() {
	for _, b := range storyBuckets {
		q := quota.Query{Credential: s.credential, Bucket: b}
		log, err := s.ledger.Entries(context.Background(), q)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, p := range s.proofs {
			if p.bucket != b {
				continue
			}
			for _, l := range p.limits {
				if l.Window.Anchored || l.Window.IsRestoring() {
					continue // the model's ends and levels are compared all along
				}
				if sum := sumAt(log, l.Window, p.at); sum > l.Units {
					s.t.Fatalf("I2: %d units in %+v at %s:\n%+v", sum, l, p.at, log)
				}
			}
		}
	}
}

func sumAt(log []quota.Entry, w quota.Window, at time.Time) int64 {
	var sum int64
	for _, e := range log {
		if !e.At.After(at) && inside(w, 0, e.At.UnixMicro(), at.UnixMicro()) {
			sum += e.Units
		}
	}
	return sum
}

// counted has the totals count from the first entry: where a running total begins is the ledger's
// affair.
func counted(list []quota.Entry) []quota.Entry {
	list = append([]quota.Entry{}, list...)
	if len(list) > 0 {
		before := list[0].Total - list[0].Units
		for i := range list {
			list[i].Total -= before
		}
	}
	for i := range list {
		if list[i].Labels == nil {
			list[i].Labels = quota.Labels{}
		}
	}
	return list
}
