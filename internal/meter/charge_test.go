package meter_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
	"quotabudget/internal/youtube"
)

// TestChargedBeforeSent is I1: what the ledger denies does not reach the upstream.
func TestChargedBeforeSent(t *testing.T) {
	onLedgers(t, func(t *testing.T, open opener) {
		s := open(t, &standin.YouTube{}, units(3))
		s.Standin.Now = func() time.Time { // called while the stand-in counts the request
			if used, n := s.used(t, quota.DefaultBucket), s.Served.Load(); used < n {
				t.Errorf("request %d was counted with %d units charged", n, used)
			}
			return s.Now()
		}
		for i := range 3 {
			if status, _, err := s.get(t, chart); err != nil || status != http.StatusOK {
				t.Fatalf("request %d: %d %v", i+1, status, err)
			}
		}
		_, _, err := s.get(t, chart)
		refused(t, err, quota.ErrExhausted)
		denied, ok := errors.AsType[*quota.DeniedError](err)
		if !ok || denied.Decision.Limit != "default 24h" ||
			denied.Decision.RetryAt.Sub(noon).Round(time.Second) != 24*time.Hour {
			t.Errorf("got %+v", denied)
		}
		s.Standin.Now = s.Now
		s.Counted(t, 3, 3)
		s.SetNow(denied.Decision.RetryAt)
		if _, _, err := s.get(t, chart); err != nil {
			t.Error(err)
		}
		// The clock stands still: charges are stamped 1 µs apart, and two have left the window.
		if used := s.used(t, quota.DefaultBucket); s.Standin.Counts().Requests != 4 || used != 2 {
			t.Errorf("%d units after %+v", used, s.Standin.Counts())
		}
	})
}

// TestEveryAttemptAndPage: each page of the official client and each retry of ours is charged.
func TestEveryAttemptAndPage(t *testing.T) {
	onLedgers(t, func(t *testing.T, open opener) {
		trouble := []string{"503@2-3", "drop@5", "truncated@6"}
		s := open(t, &standin.YouTube{Faults: trouble}, units(100))
		client, err := youtube.New(t.Context(), s.Server.URL, s)
		must(t, err)
		client.Retry = youtube.Retry{Transient: 5}
		var tally meter.Tally
		ctx := meter.WithTally(t.Context(), &tally)
		pages, token := 0, ""
		for done := false; !done; done = token == "" {
			page, err := client.Chart(ctx, youtube.ChartRequest{Region: "US", PageToken: token})
			must(t, err)
			pages, token = pages+1, page.Next
		}
		if pages != 4 || tally.Sum() != 8 || tally.Units()["default"] != 8 {
			t.Errorf("%d pages, tally %v", pages, tally.Units())
		}
		s.Counted(t, 8, 8)
	})
}

func TestUnreachableLedgerDenies(t *testing.T) {
	onLedgers(t, func(t *testing.T, open opener) {
		s := open(t, &standin.YouTube{}, units(100))
		s.Budget.Open = []string{"youtube.videos.list"}
		must(t, s.Ledger.Close())
		_, _, err := s.get(t, categories) // I5
		if !errors.Is(err, quota.ErrNotSent) ||
			!errors.Is(err, quota.ErrUnreachable) && !errors.Is(err, quota.ErrLedgerUnusable) {
			t.Errorf("got %v", err)
		}
		if n := s.Standin.Counts().Requests; n != 0 {
			t.Errorf("%d requests were sent", n)
		}
		var tally meter.Tally
		status, _, err := s.ask(meter.WithTally(t.Context(), &tally), chart)
		if status != 200 || err != nil || s.Standin.Counts().Requests != 1 || tally.Sum() != 0 {
			t.Errorf("%d %v, tally %v", status, err, tally.Units())
		}
		log := s.Log.String()
		if !strings.Contains(log, "level=WARN") || !strings.Contains(log, "unmetered") {
			t.Errorf("log: %s", log)
		}
	})
}

func TestObserve(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(1))
	s.Budget.Observe = true
	for range 3 {
		if status, _, err := s.get(t, chart); err != nil || status != http.StatusOK {
			t.Fatal(status, err)
		}
	}
	s.Counted(t, 3, 3)
}

// TestCall: labels reach the log, a person may use the headroom, and a call can draw on a
// reservation.
func TestCall(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(10))
	s.Budget.Limits[0].Headroom = 4
	s.Budget.Labels = quota.Labels{quota.LabelJob: "nightly"}
	reserved, err := s.Budget.Reserve(t.Context(), quota.ReserveRequest{
		Call: quota.Call{Units: 6}, TTL: time.Hour})
	if err != nil || !reserved.Allowed {
		t.Fatal(reserved, err)
	}
	labels := quota.Labels{quota.LabelRegion: "BR"}
	for _, test := range []struct {
		call    quota.Call
		allowed bool
	}{
		{quota.Call{}, false},
		{quota.Call{Manual: true}, true},
		{quota.Call{Reservation: reserved.Reservation, Labels: labels}, true},
	} {
		_, _, err := s.ask(meter.WithCall(t.Context(), test.call), chart)
		if (err == nil) != test.allowed {
			t.Errorf("%+v: %v", test.call, err)
		}
	}
	s.Counted(t, 2, 2)
	if held := s.usage(t, "default").Held; held != 5 {
		t.Errorf("%d units are set aside", held)
	}
	entries := s.entries(t)
	if len(entries) != 2 {
		t.Fatal(entries)
	}
	const want = "job=nightly&method=youtube.videos.list&region=BR"
	if got := entries[1].Labels.Encode(); got != want {
		t.Errorf("labels %s", got)
	}
}

// TestManyAtOnce: with many concurrent callers, the upstream gets no more requests than there are
// units.
func TestManyAtOnce(t *testing.T) {
	onLedgers(t, func(t *testing.T, open opener) {
		s := open(t, &standin.YouTube{}, units(25))
		var tally meter.Tally
		ctx := meter.WithTally(context.Background(), &tally)
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				if _, _, err := s.ask(ctx, chart); err != nil {
					refused(t, err, quota.ErrExhausted)
				}
			})
		}
		wg.Wait()
		s.Counted(t, 25, 25)
		if tally.Sum() != 25 {
			t.Errorf("tally %v", tally.Units())
		}
	})
}

// TestOneKeyPaysForOneRequest: a second request under the same idempotency key would not be
// charged, so it is not sent, nor is one of an unknown price.
func TestOneKeyPaysForOneRequest(t *testing.T) {
	s, m := open(t, &standin.YouTube{}, units(10)), openMetered(t, "anthropic")
	ctx := meter.WithCall(t.Context(), quota.Call{Key: "once"})
	for i, want := range []error{nil, quota.ErrKeyReused} {
		_, _, err := s.ask(ctx, chart)
		_, _, unknown := m.send(m.message(ctx, 10, false))
		if !errors.Is(err, want) || !errors.Is(unknown, want) {
			t.Errorf("request %d: %v, and %v, want %v", i+1, err, unknown, want)
		}
	}
	s.Counted(t, 1, 1)
	m.agrees(t, "requests", "output")
}
