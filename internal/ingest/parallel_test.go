package ingest_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/ingest"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
	"quotabudget/internal/youtube"
)

// gather returns a hook that lets the first skip requests pass, holds the next ones until
// together of them are waiting, and then calls then.
func gather(skip, together int, then func()) func(*http.Request) {
	var mu sync.Mutex
	all := make(chan struct{})
	return func(r *http.Request) {
		mu.Lock()
		skip--
		mine := skip < 0
		if mine {
			if together--; together == 0 {
				then()
				close(all)
			}
		}
		mu.Unlock()
		if mine {
			select {
			case <-all:
			case <-r.Context().Done():
			}
		}
	}
}

// sorted returns the requests since the last call, sorted.
func (s *env) sorted() string {
	return strings.Join(slices.Sorted(slices.Values(strings.Fields(s.requests()))), " ")
}

// TestHowLongItTakes: every reader stays busy until no region is left, and a short chart delays
// no other.
func TestHowLongItTakes(t *testing.T) {
	const answer = time.Second
	for _, c := range []struct {
		places, units, readers int
		want                   time.Duration
	}{
		{12, 1000, 1, 32 * answer},
		{12, 1000, 8, 5 * answer}, // the first page only
		{12, 1000, 4, 9 * answer},
		{12, 32, 8, 5 * answer}, // exactly enough units
		{3, 20, 4, 3 * answer},  // 1, 4 and 3 of the 8 one-page charts
	} {
		totals := make(map[string]int)
		for region := range strings.SplitSeq(eight, ",") {
			totals[region] = c.places
		}
		charts := standin.Generator{Totals: totals, Days: 1}.Charts()
		standin := &standin.YouTube{Charts: charts}
		inBubble(t, standin, int64(c.units), func(t *testing.T, s *env) {
			s.onRequest(func(*http.Request) { time.Sleep(answer) })
			began := time.Now()
			sum, err := s.withReaders(t, eight, 4, c.readers).Execute(t.Context())
			took := time.Since(began)
			if err != nil || sum.Outcome != ingest.Complete || took != c.want {
				t.Errorf("%+v: %v; %s, %v", c, took, written(sum), err)
			}
		})
	}
}

// TestDownMeanwhile: when the upstream goes down, requests in flight get their usual retries;
// after that one region is tried at a time.
func TestDownMeanwhile(t *testing.T) {
	standin := &standin.YouTube{Faults: []string{"503@2-"}}
	inBubble(t, standin, 1000, func(t *testing.T, s *env) {
		s.onRequest(func(*http.Request) { time.Sleep(time.Second) })
		sum, err := s.withReaders(t, eight, 4, 4).Execute(t.Context())
		if err == nil || !strings.Contains(err.Error(), "3 regions in a row") ||
			sum.Units["default"] != 1+(4+1+1)*4 {
			t.Errorf("swept %s, %v", written(sum), err)
		}
		if last := sum.Regions[7]; last.Outcome != ingest.Failed {
			t.Errorf("%s, the last one, is %s", last.Region, last.Outcome)
		}
	})
}

// TestDownTogether: three regions that fail at the same moment count as one failure, so a short
// outage does not end the sweep.
func TestDownTogether(t *testing.T) {
	s := plenty(t)
	s.standin.SetFaults("503:GB*4", "503:DE*4", "503:FR*4")
	failed, all := 0, make(chan struct{})
	sweep := s.sweep(t, "US,GB,DE,FR,IN,BR", 2)
	sweep.Watch = func(e ingest.Event) {
		if e.Outcome == ingest.Failed {
			if failed++; failed == 3 {
				close(all)
			}
		}
	}
	together := gather(1, 4, func() {}) // US2, and the first page of GB, DE and FR
	s.onRequest(func(r *http.Request) {
		together(r)
		if r.URL.Query().Get("regionCode") == "US" && r.URL.Query().Has("pageToken") {
			select {
			case <-all: // until then no response shows that the upstream is up
			case <-r.Context().Done():
			}
		}
	})
	s.runMany(t, sweep, 4, "partial US:2/100:2 GB:failed:0/0:4 DE:failed:0/0:4 FR:failed:0/0:4 "+
		"IN:2/100:2 BR:2/100:2")
	s.balanced(t)
}

// TestShortUnitsCompleteCharts: a chart is begun in parallel only if the units suffice to
// complete it.
func TestShortUnitsCompleteCharts(t *testing.T) {
	onLedgers(t, func(t *testing.T, open openFunc) {
		s := open(t, &standin.YouTube{}, units(9))
		sum := s.runMany(t, s.sweep(t, "US,GB,DE,FR", 4), 4,
			"exhausted US:4/200:4 GB:4/200:4 DE:partial:1/50:1 FR:skipped:0/0:0")
		if asked := s.sorted(); asked != "DE1 GB1 GB2 GB3 GB4 US1 US2 US3 US4" {
			t.Errorf("asked %s", asked)
		}
		if sum.Limit != "default 24h" || sum.Regions[3].Err() != nil {
			t.Errorf("%+v", sum)
		}
		s.balanced(t)
	})
}

// TestDeniedInTheMiddle: when another process uses up the units, the readers request no further
// page. Every chart in progress keeps its pages, and the next sweep resumes these charts first.
func TestDeniedInTheMiddle(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(100))
	s.onRequest(gather(1, 3, func() { // US2 GB1 DE1
		for range 96 {
			call := quota.Call{Method: "youtube.videos.list"}
			if _, err := s.budget.Charge(context.Background(), call); err != nil {
				t.Error(err)
			}
		}
	}))
	sum, err := s.withReaders(t, "US,GB,DE,FR,IN", 4, 3).Execute(t.Context())
	if err != nil || sum.Outcome != ingest.Exhausted || sum.Units["default"] != 4 ||
		s.sorted() != "DE1 GB1 US1 US2" {
		t.Errorf("swept %s, %v", written(sum), err)
	}
	for i, r := range sum.Regions {
		half, denied := r.Outcome == ingest.Partial, errors.Is(r.Err(), quota.ErrExhausted)
		if half != (i < 3) || denied != (i < 3) {
			t.Errorf("%s is %s: %v", r.Region, r.Outcome, r.Err())
		}
	}
	s.onRequest(nil)
	s.budget.Limits = units(1000)
	s.runMany(t, s.sweep(t, "US,GB,DE,FR,IN", 4), 3,
		"complete US:4/200:2 GB:4/200:3 DE:4/200:3 FR:4/200:4 IN:4/171:4")
}

// TestTakenTooLate: a region taken when the sweep has just ended is reported as skipped.
func TestTakenTooLate(t *testing.T) {
	standin := &standin.YouTube{Faults: []string{"403-blocked@2-"}}
	inBubble(t, standin, 1000, func(t *testing.T, s *env) {
		sweep := s.withReaders(t, "US,GB,DE", 4, 2)
		sweep.Unpaced = func(region string) bool {
			if region == "GB" {
				time.Sleep(time.Hour) // by then the upstream has refused US
			}
			return false
		}
		sum, err := sweep.Execute(t.Context())
		want := "failed US:failed:1/3:2 GB:skipped:0/0:0 DE:skipped:0/0:0"
		gb := sum.Regions[1].Err()
		if !isKind(err, youtube.BadCredential) || written(sum) != want || gb != nil {
			t.Errorf("swept %s, %v: %v", written(sum), err, gb)
		}
	})
}

// TestReaderPanics: Execute panics with a reader's panic, and the other readers stop.
func TestReaderPanics(t *testing.T) {
	s := plenty(t)
	sweep := s.withReaders(t, eight, 4, 4)
	sweep.Unpaced = func(region string) bool { return region == "DE" && len([]int{}[:1]) > 0 }
	defer func() {
		if value := recover(); value == nil || !strings.Contains(value.(string), "out of range") {
			t.Errorf("recovered %v", value)
		}
		if n := s.standin.Counts().Requests; n > 20 {
			t.Errorf("%d requests", n)
		}
	}()
	sweep.Execute(t.Context())
}
