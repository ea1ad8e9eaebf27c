package ingest_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// TestEveryRegionIsComplete with one reader and with four. Once the first page has arrived, each
// of the four has a request in flight.
func TestEveryRegionIsComplete(t *testing.T) {
	onLedgers(t, func(t *testing.T, open openFunc) {
		for _, readers := range []int{1, 4} {
			s := open(t, &standin.YouTube{}, units(1000))
			if readers > 1 {
				s.onRequest(gather(1, readers, func() {})) // US2 GB1 DE1 FR1, or the sweep hangs
			}
			sum, err := s.withReaders(t, eight, 4, readers).Execute(t.Context())
			want := "complete US:4/200:4 GB:4/200:4 DE:4/200:4 FR:4/200:4 " +
				"IN:4/171:4 BR:4/200:4 AU:3/137:3 CA:4/200:4"
			asked := "US1 US2 US3 US4 GB1 GB2 GB3 GB4 DE1 DE2 DE3 DE4 FR1 FR2 FR3 FR4 " +
				"IN1 IN2 IN3 IN4 BR1 BR2 BR3 BR4 AU1 AU2 AU3 CA1 CA2 CA3 CA4"
			got := s.requests()
			if err != nil || written(sum) != want || readers == 1 && got != asked {
				t.Errorf("swept %s, %v; asked %s", written(sum), err, got)
			}
			if sum.Units["default"] != 31 || len(sum.Units) != 1 || !sum.RetryAt.IsZero() ||
				sum.RetryAfter != 0 || sum.Limit != "" {
				t.Errorf("summary %+v", sum)
			}
			for region := range strings.SplitSeq(eight, ",") {
				s.whole(t, region, 200)
			}
			s.balanced(t)
		}
	})
}

// TestStalestFirst: after a sweep of some regions, the next one begins with the others.
func TestStalestFirst(t *testing.T) {
	s := plenty(t)
	s.run(t, "GB,DE", 1, "complete GB:1/50:1 DE:1/50:1", "GB1 DE1")
	s.SetNow(nine.Add(time.Hour))
	s.run(t, "GB", 1, "complete GB:1/50:1", "GB1")
	s.SetNow(nine.Add(2 * time.Hour))
	s.run(t, "GB,US,DE,CA", 1, "complete US:1/50:1 CA:1/50:1 DE:1/50:1 GB:1/50:1",
		"US1 CA1 DE1 GB1")
}

// TestExhausted: with 9 units for 16 pages the tenth request is not sent, the stored pages are
// kept, and the next sweep goes on with the regions left out.
func TestExhausted(t *testing.T) {
	onLedgers(t, func(t *testing.T, open openFunc) {
		s := open(t, &standin.YouTube{}, units(9))
		sum := s.run(t, "US,GB,DE,FR", 4,
			"exhausted US:4/200:4 GB:4/200:4 DE:partial:1/50:1 FR:skipped:0/0:0",
			"US1 US2 US3 US4 GB1 GB2 GB3 GB4 DE1")
		if sum.Limit != "default 24h" || !sum.RetryAt.Equal(nine.Add(24*time.Hour)) ||
			sum.Units["default"] != 9 || sum.RetryAfter.Round(time.Millisecond) != 24*time.Hour ||
			sum.RetryAfter > 24*time.Hour { // less the microseconds between stamps
			t.Errorf("summary %+v", sum)
		}
		for _, r := range sum.Regions {
			if (r.Region == "DE") != errors.Is(r.Err(), quota.ErrExhausted) {
				t.Errorf("%s: %v", r.Region, r.Err())
			}
		}
		s.whole(t, "GB", 200)
		s.balanced(t)
		if s.current(t, "DE") != nil || s.current(t, "FR") != nil {
			t.Error("half a chart is shown")
		}
		s.SetNow(nine.Add(5 * time.Minute)) // still exhausted: no request and nothing lost
		s.run(t, "US,GB,DE,FR", 4,
			"exhausted DE:partial:1/50:0 FR:skipped:0/0:0 US:skipped:0/0:0 GB:skipped:0/0:0", "")
		s.budget.Limits = units(17)
		s.SetNow(nine.Add(10 * time.Minute))
		s.run(t, "US,GB,DE,FR", 4,
			"exhausted DE:4/200:3 FR:4/200:4 US:partial:1/50:1 GB:skipped:0/0:0",
			"DE2 DE3 DE4 FR1 FR2 FR3 FR4 US1")
		s.whole(t, "DE", 200)
		s.balanced(t)
		// 9 units are free again; the half chart is too old to resume
		s.SetNow(nine.Add(24*time.Hour + time.Second))
		s.run(t, "US,GB,DE,FR", 4,
			"exhausted US:4/200:4 GB:4/200:4 DE:partial:1/50:1 FR:skipped:0/0:0",
			"US1 US2 US3 US4 GB1 GB2 GB3 GB4 DE1")
	})
}

// TestResume: an interrupted chart is resumed at its next page for a quarter of an hour, and
// started over after that.
func TestResume(t *testing.T) {
	for _, test := range []struct {
		after, resume time.Duration
		want, asked   string
	}{
		{15 * time.Minute, 0, "complete US:4/200:2", "US3 US4"},
		{15*time.Minute + time.Microsecond, 0, "complete US:4/200:4", "US1 US2 US3 US4"},
		{16 * time.Minute, time.Hour, "complete US:4/200:2", "US3 US4"},
	} {
		s := open(t, &standin.YouTube{}, units(2))
		s.run(t, "US", 4, "exhausted US:partial:2/100:2", "US1 US2")
		s.budget.Limits = units(100)
		s.SetNow(nine.Add(test.after))
		again := s.sweep(t, "US", 4)
		again.Resume = test.resume
		_, err := s.execute(t.Context(), t, again, test.want, test.asked)
		must(t, err)
		s.whole(t, "US", 200)
	}
}

// TestResumeFewerPages: a chart that already has all the pages wanted needs no request.
func TestResumeFewerPages(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(2))
	s.run(t, "US", 4, "exhausted US:partial:2/100:2", "US1 US2")
	s.run(t, "US", 2, "complete US:2/100:0", "")
	s.whole(t, "US", 100)
}

// TestUpstreamIsExhausted: if the upstream has fewer units than we believe, its first refusal
// ends the sweep until its reset.
func TestUpstreamIsExhausted(t *testing.T) {
	onLedgers(t, func(t *testing.T, open openFunc) {
		s := open(t, &standin.YouTube{Limits: map[string]int64{"default": 5}}, units(1000))
		sum := s.run(t, "US,GB,DE", 4, "exhausted US:4/200:4 GB:partial:1/50:2 DE:skipped:0/0:0",
			"US1 US2 US3 US4 GB1 GB2")
		suspended := func(after time.Duration) {
			t.Helper()
			if sum.Limit != quota.Suspended || !sum.RetryAt.Equal(midnight) ||
				sum.RetryAfter != after {
				t.Errorf("summary %+v", sum)
			}
		}
		suspended(midnight.Sub(nine))
		s.SetNow(midnight.Add(-time.Microsecond))
		sum = s.run(t, "US,GB,DE", 4,
			"exhausted GB:skipped:0/0:0 DE:skipped:0/0:0 US:skipped:0/0:0", "")
		suspended(time.Microsecond)
		s.standin.SetLimit("default", 1000)
		s.SetNow(midnight)
		s.run(t, "US,GB,DE", 4, "complete GB:4/200:4 DE:4/200:4 US:4/200:4",
			"GB1 GB2 GB3 GB4 DE1 DE2 DE3 DE4 US1 US2 US3 US4")
	})
}

// TestLedgerFails: a gate that cannot charge ends the sweep.
func TestLedgerFails(t *testing.T) {
	s := plenty(t)
	s.onRequest(func(*http.Request) { s.budget.Ledger.(*ledger.Ledger).Close() })
	_, err := s.execute(t.Context(), t, s.sweep(t, "US,GB", 4),
		"failed US:failed:1/50:1 GB:skipped:0/0:0", "US1")
	if !errors.Is(err, quota.ErrUnreachable) && !errors.Is(err, quota.ErrLedgerUnusable) {
		t.Errorf("got %v", err)
	}
	s = open(t, &standin.YouTube{}, units(0))
	_, err = s.execute(t.Context(), t, s.sweep(t, "US,GB", 4),
		"failed US:failed:0/0:0 GB:skipped:0/0:0", "")
	if !errors.Is(err, quota.ErrCostExceedsLimit) {
		t.Errorf("got %v", err)
	}
}

// TestStopped: when ctx ends, the page in flight is stored and no other requested, and the next
// sweep goes on from there.
func TestStopped(t *testing.T) {
	s := plenty(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.onRequest(func(r *http.Request) {
		if r.URL.Query().Get("regionCode") == "GB" && r.URL.Query().Has("pageToken") {
			cancel()
		}
	})
	_, err := s.execute(ctx, t, s.sweep(t, "US,GB,DE", 4),
		"partial US:4/200:4 GB:partial:2/100:2 DE:skipped:0/0:0", "US1 US2 US3 US4 GB1 GB2")
	must(t, err)
	s.onRequest(nil)
	_, err = s.execute(ctx, t, s.sweep(t, "US,GB,DE", 4), // ctx has already ended
		"failed GB:skipped:0/0:0 DE:skipped:0/0:0 US:skipped:0/0:0", "")
	must(t, err)
	s.run(t, "US,GB,DE", 4, "complete GB:4/200:2 DE:4/200:4 US:4/200:4",
		"GB3 GB4 DE1 DE2 DE3 DE4 US1 US2 US3 US4")
	s.whole(t, "GB", 200)
	s.balanced(t)
}

// TestGraceIsOver: after the grace period the sweep does not wait for a response.
func TestGraceIsOver(t *testing.T) {
	s := open(t, &standin.YouTube{Faults: []string{"hang@2"}}, units(1000))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.onRequest(func(r *http.Request) {
		if r.URL.Query().Has("pageToken") {
			cancel()
		}
	})
	sweep := s.sweep(t, "US,GB", 4)
	sweep.Grace = time.Millisecond
	_, err := s.execute(ctx, t, sweep, "partial US:partial:1/50:2 GB:skipped:0/0:0", "US1 US2")
	must(t, err)
	s.run(t, "US", 2, "complete US:2/100:1", "US2") // the client did not ask a third time
	s.balanced(t)
}
