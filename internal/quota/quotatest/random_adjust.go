package quotatest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
)

// adjust corrects what was used in a span that no ledger has begun to forget.
func (s *story) adjust() {
	ctx, now := context.Background(), s.clock.Now()
	ago := func(what string, most time.Duration) time.Time {
		back := rapid.SampledFrom([]time.Duration{0, time.Microsecond, time.Millisecond,
			time.Minute, time.Hour, hours(30)}).Draw(s.t, what)
		return now.Add(-min(back, most))
	}
	a := quota.Adjust{
		Credential: s.credential, ID: s.id(), Key: s.key(), Bucket: s.bucket(),
		Units:  rapid.Int64Range(-30, 12).Draw(s.t, "by"),
		After:  ago("after", hours(30)).Add(-time.Minute),
		Labels: quota.Labels{"by": "me", "run": "r"},
		DryRun: rapid.IntRange(0, 5).Draw(s.t, "dry run") == 5,
	}
	if rapid.Bool().Draw(s.t, "until") {
		a.Until = ago("until", now.Sub(a.After)-time.Microsecond)
	}
	if a.Limits = s.limits[a.Bucket]; a.Units == 0 {
		a.Units = 1
	}
	if rapid.Bool().Draw(s.t, "was") {
		end := a.Until
		if end.IsZero() {
			end = now.Add(hours(100)) // the clock may have been set back
		}
		was, _ := s.model.Between(ctx, s.credential, a.Bucket, a.After, end)
		if was += rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(s.t, "wrong"); was >= 0 {
			a.Was = &was
		}
	}
	want, wantErr := s.model.Adjust(ctx, a)
	got, err := s.ledger.Adjust(ctx, a)
	s.compareDecision(fmt.Sprintf("adjust %+v", a), got, want, err, wantErr)
	if want.Entry != "" && !want.Replayed { // what was allowed since is another matter
		s.proofs = slices.DeleteFunc(s.proofs, func(p proof) bool {
			return p.bucket == a.Bucket && !p.at.Before(want.At)
		})
	}
}

// compareTakings compares what was taken off the entries of a bucket lately.
func (s *pair) compareTakings(b string, since time.Time) {
	q := quota.Query{Credential: s.credential, Bucket: b, Since: since}
	want, _ := s.model.Takings(context.Background(), q)
	got, err := s.ledger.Takings(context.Background(), q)
	some := []quota.Taking{}
	s.same("takings of "+b, append(some, got...), append(some, want...), err)
}
