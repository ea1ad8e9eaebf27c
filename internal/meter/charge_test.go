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
	"quotabudget/internal/youtube"
	"quotabudget/internal/youtube/youtubetest"
)

// TestChargedBeforeSent is I1: what the ledger denies does not reach the upstream.
func TestChargedBeforeSent(t *testing.T) {
	onLedgers(t, func(t *testing.T, open func(testing.TB, *youtubetest.Server, []quota.Limit) *station) {
		s := open(t, &youtubetest.Server{}, units(3))
		s.standin.Now = func() time.Time { // asked as the request is being counted
			if used, n := s.used(t, quota.DefaultBucket), s.sent(); used < n {
				t.Errorf("request %d was counted with %d units charged", n, used)
			}
			return s.clock.Now()
		}
		for i := range 3 {
			if status, _, err := s.get(t, chart); err != nil || status != http.StatusOK {
				t.Fatalf("request %d: %d %v", i+1, status, err)
			}
		}
		_, _, err := s.get(t, chart)
		refused(t, err, quota.ErrExhausted)
		denied, ok := errors.AsType[*quota.DeniedError](err)
		if !ok || denied.Decision.Limit != "default 24h" || denied.Decision.RetryAt.Sub(noon).Round(time.Second) != 24*time.Hour {
			t.Errorf("got %+v", denied)
		}
		s.standin.Now = s.clock.Now
		s.counted(t, 3, 3)
		s.clock.Set(denied.Decision.RetryAt)
		if _, _, err := s.get(t, chart); err != nil {
			t.Error(err)
		}
		s.counted(t, 4, 2) // the clock stands still: each charge is stamped 1 µs after the one before, and two have left
	})
}

// sent is how many requests the stand-in has begun to serve; it cannot be asked while it counts.
func (s *station) sent() int64 { return s.served.Load() }

// TestEveryAttemptAndPage: the official client's pages and the retries of ours are requests like
// any other.
func TestEveryAttemptAndPage(t *testing.T) {
	onLedgers(t, func(t *testing.T, open func(testing.TB, *youtubetest.Server, []quota.Limit) *station) {
		s := open(t, &youtubetest.Server{Faults: faults(t, "503@2-3", "drop@5", "truncated@6")}, units(100))
		client, err := youtube.New(t.Context(), s.upstream.URL, s)
		if err != nil {
			t.Fatal(err)
		}
		client.Retry = youtube.Retry{Transient: 5}
		var tally meter.Tally
		ctx := meter.WithTally(t.Context(), &tally)
		pages, token := 0, ""
		for done := false; !done; done = token == "" {
			page, err := client.Chart(ctx, youtube.ChartRequest{Region: "US", PageToken: token})
			if err != nil {
				t.Fatal(err)
			}
			pages, token = pages+1, page.Next
		}
		if pages != 4 || tally.Sum() != 8 || tally.Units()["default"] != 8 {
			t.Errorf("%d pages, tally %v", pages, tally.Units())
		}
		s.counted(t, 8, 8)
	})
}

func TestUnreachableLedgerDenies(t *testing.T) {
	onLedgers(t, func(t *testing.T, open func(testing.TB, *youtubetest.Server, []quota.Limit) *station) {
		s := open(t, &youtubetest.Server{}, units(100))
		s.Budget.Open = []string{"youtube.videos.list"}
		if err := s.ledger.Close(); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.get(t, categories) // I5
		if !errors.Is(err, quota.ErrNotSent) || !errors.Is(err, quota.ErrUnreachable) && !errors.Is(err, quota.ErrLedgerUnusable) {
			t.Errorf("got %v", err)
		}
		if n := s.standin.Counts().Requests; n != 0 {
			t.Errorf("%d requests were sent", n)
		}
		var tally meter.Tally
		r, _ := http.NewRequestWithContext(meter.WithTally(t.Context(), &tally), "GET", s.upstream.URL+chart, nil)
		status, _, err := read((&http.Client{Transport: s}).Do(r))
		if status != http.StatusOK || err != nil || s.standin.Counts().Requests != 1 || tally.Sum() != 0 {
			t.Errorf("%d %v, tally %v", status, err, tally.Units())
		}
		if !strings.Contains(s.log.String(), "level=WARN") || !strings.Contains(s.log.String(), "unmetered") {
			t.Errorf("log: %s", s.log)
		}
	})
}

func TestObserve(t *testing.T) {
	s := open(t, &youtubetest.Server{}, units(1))
	s.Budget.Observe = true
	for range 3 {
		if status, _, err := s.get(t, chart); err != nil || status != http.StatusOK {
			t.Fatal(status, err)
		}
	}
	s.counted(t, 3, 3)
}

// TestCall: labels reach the log, a person may use the headroom, and what was set aside can be
// drawn on.
func TestCall(t *testing.T) {
	s := open(t, &youtubetest.Server{}, units(10))
	s.Budget.Limits[0].Headroom = 4
	s.Budget.Labels = quota.Labels{quota.LabelJob: "nightly"}
	reserved, err := s.Budget.Reserve(t.Context(), quota.ReserveRequest{Units: 6, TTL: time.Hour})
	if err != nil || !reserved.Allowed {
		t.Fatal(reserved, err)
	}
	for _, test := range []struct {
		call    quota.Call
		allowed bool
	}{
		{quota.Call{}, false},
		{quota.Call{Manual: true}, true},
		{quota.Call{Reservation: reserved.Reservation, Labels: quota.Labels{quota.LabelRegion: "BR"}}, true},
	} {
		r, _ := http.NewRequestWithContext(meter.WithCall(t.Context(), test.call), "GET", s.upstream.URL+chart, nil)
		if _, _, err := read((&http.Client{Transport: s}).Do(r)); (err == nil) != test.allowed {
			t.Errorf("%+v: %v", test.call, err)
		}
	}
	s.counted(t, 2, 2)
	if held := s.usage(t, "default").Held; held != 5 {
		t.Errorf("%d units are set aside", held)
	}
	entries, err := s.ledger.Entries(t.Context(), quota.Query{Credential: "key1", Bucket: "default"})
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	if got := entries[1].Labels.Encode(); got != "job=nightly&method=youtube.videos.list&region=BR" {
		t.Errorf("labels %s", got)
	}
}

// TestManyAtOnce: however many ask at once, the upstream sees no more requests than there are
// units.
func TestManyAtOnce(t *testing.T) {
	onLedgers(t, func(t *testing.T, open func(testing.TB, *youtubetest.Server, []quota.Limit) *station) {
		s := open(t, &youtubetest.Server{}, units(25))
		var tally meter.Tally
		ctx := meter.WithTally(context.Background(), &tally)
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				r, _ := http.NewRequestWithContext(ctx, "GET", s.upstream.URL+chart, nil)
				if _, _, err := read((&http.Client{Transport: s}).Do(r)); err != nil {
					refused(t, err, quota.ErrExhausted)
				}
			})
		}
		wg.Wait()
		s.counted(t, 25, 25)
		if tally.Sum() != 25 {
			t.Errorf("tally %v", tally.Units())
		}
	})
}

// TestOneKeyPaysForOneRequest: a second request under the same idempotency key would not be
// charged, so it is not sent.
func TestOneKeyPaysForOneRequest(t *testing.T) {
	s := open(t, &youtubetest.Server{}, units(10))
	client := &http.Client{Transport: s}
	ctx := meter.WithCall(t.Context(), quota.Call{Key: "once"})
	for i, want := range []error{nil, quota.ErrKeyReused} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.upstream.URL+chart, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if !errors.Is(err, want) {
			t.Errorf("request %d: %v, want %v", i+1, err, want)
		}
		if err == nil {
			resp.Body.Close()
		}
	}
	s.counted(t, 1, 1)
}
