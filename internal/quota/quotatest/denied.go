package quotatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testSuspensionNotes: the ledger returns who suspended a bucket, when and why, until it is open.
func testSuspensionNotes(t *testing.T, h Harness) {
	ctx, s := context.Background(), newSubject(t, h, dayLimit)
	at := epoch.Add(time.Hour)
	h.SetNow(t, at)
	of := quota.Suspension{Credential: s.credential, Bucket: "default", Until: at.Add(time.Hour),
		By: "alice", Reason: `it "leaked" 100 %`}
	want := func(by, reason string, since time.Time) {
		t.Helper()
		usage, err := s.ledger.Usage(ctx, s.credential, twoLimits)
		if err != nil {
			t.Fatal(err)
		}
		u := usage.Buckets[0]
		if u.SuspendedBy != by || u.Reason != reason || !u.SuspendedSince.Equal(since) {
			t.Errorf("suspended by %q since %v: %q", u.SuspendedBy, u.SuspendedSince, u.Reason)
		}
	}
	suspend := func(of quota.Suspension) {
		t.Helper()
		if err := s.ledger.Suspend(ctx, of); err != nil {
			t.Fatal(err)
		}
	}
	suspend(of)
	want("alice", of.Reason, at)
	other := of
	other.Bucket, other.Until, other.By = "search_list", at.Add(time.Minute), "bob"
	suspend(other)
	h.SetNow(t, at.Add(30*time.Minute))
	want("alice", of.Reason, at)
	h.SetNow(t, at.Add(2*time.Hour))
	want("", "", time.Time{})
	of.Until, of.By, of.Reason = at.Add(3*time.Hour), quota.ByUpstream, ""
	suspend(of)
	want(quota.ByUpstream, "", at.Add(2*time.Hour))
	suspend(quota.Suspension{Credential: s.credential, Bucket: "default"})
	want("", "", time.Time{})
	of.Reason = "two\nlines"
	if err := s.ledger.Suspend(ctx, of); !errors.Is(err, quota.ErrMalformed) {
		t.Errorf("a reason of two lines: %v", err)
	}
}

// testDenialsAreCounted: denials of two processes add up, by hour, limit and labels without the
// run; a day has so many rows at most, and they are kept for DenialTime.
func testDenialsAreCounted(t *testing.T, h Harness) {
	ctx, s := context.Background(), newSubject(t, h, dayLimit)
	type flusher interface{ Flush(time.Duration) }
	if _, ok := s.ledger.(flusher); !ok { // the model keeps no counts
		return
	}
	deny := func(l quota.Ledger, labels quota.Labels, call quota.Call) {
		b := &quota.Budget{Ledger: l, Credential: s.credential, Limits: twoLimits, Labels: labels}
		if d, err := b.Charge(ctx, call); err != nil || d.Allowed {
			t.Fatalf("want a denial: %+v, %v", d, err)
		}
		hold := quota.ReserveRequest{Call: call, TTL: time.Minute}
		if _, err := b.Hold(ctx, hold); err == nil {
			t.Fatal("want a denial")
		}
	}
	flush := func(l quota.Ledger) { l.(flusher).Flush(time.Minute) }
	read := func(since time.Time) (rows []string) {
		all, err := s.ledger.Denials(ctx, s.credential, since)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range all {
			rows = append(rows, fmt.Sprintf("%s %s %s %s %d %d %s", d.Hour.Format("15h"), d.Bucket,
				d.Limit, d.Labels.Encode(), d.Count, d.Units, d.LastAt.Format("15:04")))
		}
		return rows
	}
	start := epoch.Truncate(24 * time.Hour).Add(34 * time.Hour) // ten o'clock of the next day
	h.SetNow(t, start)
	s.charge(100)
	other := h.Open(t)
	for i, l := range []quota.Ledger{s.ledger, other} {
		h.SetNow(t, start.Add(time.Duration(i)*time.Minute))
		deny(l, quota.Labels{"job": "a", "run": fmt.Sprint("r", i)}, quota.Call{Units: 5})
		deny(l, quota.Labels{"job": "b"}, quota.Call{Costs: both(2, 1)})
		deny(l, nil, quota.Call{Units: 1, Again: true})
		flush(l)
	}
	h.SetNow(t, start.Add(time.Hour))
	deny(other, quota.Labels{"job": "a"}, quota.Call{Units: 7})
	flush(other)
	want := []string{
		"10h default " + dayLimit.Name() + " job=a 4 20 10:01",
		"10h default " + dayLimit.Name() + " job=b 4 8 10:01",
		"11h default " + dayLimit.Name() + " job=a 2 14 11:00",
	}
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
	flush(s.ledger)
	if got := read(start); len(got) > quota.MaxDenials+2 || len(got) < quota.MaxDenials {
		t.Errorf("%d rows are kept", len(got))
	}
	h.SetNow(t, start.Add(quota.DenialTime+2*time.Hour))
	s.charge(100)
	deny(other, quota.Labels{"job": "late"}, quota.Call{Units: 1})
	flush(other)
	if got := read(time.Time{}); len(got) != 1 {
		t.Errorf("%d rows are kept for ever", len(got))
	}
}
