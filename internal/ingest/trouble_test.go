package ingest_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/ingest"
	"quotabudget/internal/sqlite"
	"quotabudget/internal/standin"
	"quotabudget/internal/youtube"
)

// TestOneRegionsTrouble: one region's error does not stop the others. A missing chart is not
// requested again on the upstream's day.
func TestOneRegionsTrouble(t *testing.T) {
	charts := standin.Generator{Totals: map[string]int{"GB": 0}}.Charts()
	s := open(t, &standin.YouTube{Charts: charts}, units(1000))
	// AQ is a region the upstream does not know.
	sum := s.run(t, "AQ,GB,US", 1,
		"partial AQ:failed:0/0:1 GB:unavailable:0/0:1 US:1/50:1", "AQ1 GB1 US1")
	if !isKind(sum.Regions[0].Err(), youtube.BadRegion) {
		t.Errorf("AQ: %v", sum.Regions[0].Err())
	}
	sum = s.run(t, "AQ,US", 1, "partial AQ:failed:0/0:0 US:1/50:1", "US1")
	err := sum.Regions[0].Err()
	const again = "not asked for again before 2026-06-08"
	if !isKind(err, youtube.BadRegion) || !strings.Contains(err.Error(), again) {
		t.Errorf("AQ: %v", err)
	}
	s.SetNow(midnight.Add(-time.Microsecond))
	s.run(t, "GB,US", 1, "complete GB:unavailable:0/0:0 US:1/50:1", "US1")
	s.SetNow(midnight)
	s.run(t, "GB,US", 1, "complete GB:unavailable:0/0:1 US:1/50:1", "GB1 US1")
	s.balanced(t)
	// The runs in between did not postpone the end of the week.
	s.SetNow(nine.Add(7*24*time.Hour - time.Microsecond))
	s.run(t, "AQ,US", 1, "partial AQ:failed:0/0:0 US:1/50:1", "US1")
	s.SetNow(nine.Add(7 * 24 * time.Hour))
	s.run(t, "AQ,US", 1, "partial AQ:failed:0/0:1 US:1/50:1", "AQ1 US1")
}

// TestFaultsOfTheUpstream: every attempt is charged. A complete chart has all its videos and is
// shown; an incomplete chart is hidden.
func TestFaultsOfTheUpstream(t *testing.T) {
	const down = "failed US:failed:0/0:4 GB:failed:0/0:4 DE:skipped:0/0:0 FR:failed:0/0:4"
	const downAsked = "US1 US1 US1 US1 GB1 GB1 GB1 GB1 FR1 FR1 FR1 FR1"
	for name, c := range map[string]struct {
		standin     *standin.YouTube
		list        string
		pages       int
		readers     int
		want, asked string
		kind        youtube.Kind // kind of the error; "" for no error
		text        string       // text in the error
	}{
		"retries": {&standin.YouTube{Faults: []string{"503:US#2*2", "429:GB*1", "drop:GB*1"}},
			"US,GB", 2, 1, "complete US:2/100:4 GB:2/100:4",
			"US1 US2 US2 US2 GB1 GB1 GB1 GB2", "", ""},
		// The sweep gives up after three regions without an answer: the first two and the last one.
		// With any number of readers, only one sends requests.
		"down": {&standin.YouTube{Faults: []string{"503"}}, "US,GB,DE,FR", 1, 1, down, downAsked,
			youtube.Transient, "3 regions in a row"},
		"down, with four readers": {&standin.YouTube{Faults: []string{"503"}}, "US,GB,DE,FR", 1, 4,
			down, downAsked, youtube.Transient, "3 regions in a row"},
		// These regions come first because they are the stalest. The sweep still serves the others.
		"regions that always fail": {&standin.YouTube{Faults: []string{"503:US", "503:GB"}},
			"US,GB,DE,FR,CA", 1, 1,
			"partial US:failed:0/0:4 GB:failed:0/0:4 DE:1/50:1 FR:1/50:1 CA:1/50:1",
			"US1 US1 US1 US1 GB1 GB1 GB1 GB1 CA1 DE1 FR1", "", ""},
		// After a refused key no further request is sent. Until the first answer, only one reader
		// sends requests.
		"another key": {&standin.YouTube{Keys: []string{"another"}}, "US,GB", 4, 8,
			"failed US:failed:0/0:1 GB:skipped:0/0:0", "US1", youtube.BadCredential, ""},
		"blocked": {&standin.YouTube{Faults: []string{"403-blocked"}}, "US,GB", 4, 8,
			"failed US:failed:0/0:1 GB:skipped:0/0:0", "US1", youtube.BadCredential, ""},
		"disabled": {&standin.YouTube{Faults: []string{"403-disabled"}}, "US,GB", 4, 8,
			"failed US:failed:0/0:1 GB:skipped:0/0:0", "US1", youtube.BadCredential, ""},
		// The sweep starts the chart over once.
		"invalid page tokens": {
			&standin.YouTube{Faults: []string{"400-token:US#3*1", "400-token:GB#2"}},
			"US,GB,DE", 0, 1, "partial US:4/200:7 GB:failed:1/50:4 DE:4/200:4",
			"US1 US2 US3 US1 US2 US3 US4 GB1 GB2 GB1 GB2 DE1 DE2 DE3 DE4", "", ""},
		// A video that moves to the next page is in the chart only once.
		"moving": {&standin.YouTube{PageMove: 3}, "US", 0, 1, "complete US:4/191:4",
			"US1 US2 US3 US4", "", ""},
	} {
		s := open(t, c.standin, units(1000))
		sum, err := s.execute(t.Context(), t, s.withReaders(t, c.list, c.pages, c.readers), c.want,
			c.asked)
		if (err != nil) != (c.kind != "") || err != nil &&
			(!isKind(err, c.kind) || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%s: %v", name, err)
		}
		for _, r := range sum.Regions {
			if r.Outcome == ingest.Complete {
				s.whole(t, r.Region, r.Videos)
			} else if s.current(t, r.Region) != nil {
				t.Errorf("%s: half a chart of %s is shown", name, r.Region)
			}
			if r.Outcome == ingest.Skipped && r.Err() != nil {
				t.Errorf("%s: %s was left out: %v", name, r.Region, r.Err())
			}
		}
		s.balanced(t)
	}
}

// TestRepeated: a video that a chart repeats is stored once, at its first place.
func TestRepeated(t *testing.T) {
	s := open(t, &standin.YouTube{Faults: []string{"repeat:US#1"}}, units(1000))
	s.run(t, "US", 2, "complete US:2/99:2", "US1 US2")
	if got := s.current(t, "US"); got[0] != s.served("US", 1)[0] || len(got) != 99 {
		t.Errorf("%d videos", len(got))
	}
}

// TestNoAnswerInTime: a region whose requests time out has failed; it is not reported as skipped.
func TestNoAnswerInTime(t *testing.T) {
	standin := &standin.YouTube{Faults: []string{"hang:GB"}}
	inBubble(t, standin, 1000, func(t *testing.T, s *env) {
		sum, err := s.sweep(t, "US,GB,DE", 1).Execute(t.Context())
		if want := "partial US:1/3:1 GB:failed:0/0:4 DE:1/3:1"; err != nil || written(sum) != want {
			t.Errorf("swept %s, %v", written(sum), err)
		}
	})
}

// TestLengths: a chart ends when the upstream returns no next page, or at the requested number of
// pages.
func TestLengths(t *testing.T) {
	totals := map[string]int{"US": 1, "GB": 50, "DE": 51, "FR": 149}
	charts := standin.Generator{Totals: totals}.Charts()
	s := open(t, &standin.YouTube{Charts: charts}, units(1000))
	s.run(t, "US,GB,DE,FR", 0, "complete US:1/1:1 GB:1/50:1 DE:2/51:2 FR:3/149:3",
		"US1 GB1 DE1 DE2 FR1 FR2 FR3")
	s.run(t, "DE,FR", 2, "complete DE:2/51:2 FR:2/100:2", "DE1 DE2 FR1 FR2")
	s.whole(t, "FR", 100)
	s.run(t, "FR", 9, "complete FR:3/149:3", "FR1 FR2 FR3")
}

// TestPagesInALoop: a page token that leads back to an earlier page ends the chart, which is not
// shown, but not the sweep.
func TestPagesInALoop(t *testing.T) {
	s := plenty(t)
	// the third page leads to the second, and the second to itself
	s.alter = func(body string) string {
		const next = `"nextPageToken":"`
		return strings.ReplaceAll(body, next+`CJYBEAA"`, next+`CDIQAA"`)
	}
	s.run(t, "US,AU", 0, "partial US:failed:3/150:3 AU:3/137:3", "US1 US2 US3 AU1 AU2 AU3")
	if s.current(t, "US") != nil {
		t.Error("half a chart is shown")
	}
	// A resumed chart is not complete either when the loop reaches the number of pages wanted.
	for _, pages := range []int{0, 4} {
		s.run(t, "US", pages, "failed US:failed:3/150:1", "US2")
		if s.current(t, "US") != nil {
			t.Error("half a chart is shown")
		}
	}
}

// TestEmptyChart: an empty list does not replace a chart, and the next sweep asks again.
func TestEmptyChart(t *testing.T) {
	s := plenty(t)
	s.run(t, "US", 1, "complete US:1/50:1", "US1")
	s.alter = func(string) string { return `{"kind":"youtube#videoListResponse","items":[]}` }
	for range 2 {
		s.run(t, "US", 1, "complete US:unavailable:0/0:1", "US1")
		s.whole(t, "US", 50)
	}
	// A list that is empty up to the last page that is read is no chart either.
	s.alter = func(string) string { return `{"items":[],"nextPageToken":"CDIQAA"}` }
	s.run(t, "US", 2, "complete US:unavailable:1/0:2", "US1 US2")
	s.whole(t, "US", 50)
	s.run(t, "US", 1, "complete US:unavailable:1/0:0", "") // nor is its first page alone
	s.whole(t, "US", 50)
	s.balanced(t)
}

// TestHalfChartIsHidden: while a chart is being read, the previous one is shown.
func TestHalfChartIsHidden(t *testing.T) {
	s := plenty(t)
	before := 0
	for range 2 {
		sweep := s.sweep(t, "US", 0)
		steps := 0
		sweep.Watch = func(e ingest.Event) {
			steps++
			want := before
			if e.Pages == 4 {
				want = 200
			}
			got, ended := len(s.current(t, "US")), e.Outcome != ""
			if got != want || e.Videos != 50*e.Pages || ended != (steps == 5) {
				t.Errorf("%+v: %d videos are shown, want %d", e, got, want)
			}
		}
		_, err := s.execute(t.Context(), t, sweep, "complete US:4/200:4", "US1 US2 US3 US4")
		must(t, err)
		if steps != 5 {
			t.Errorf("%d steps", steps)
		}
		before = 200
	}
}

// TestCatalogueFails: a page that cannot be stored is not bought.
func TestCatalogueFails(t *testing.T) {
	s := plenty(t)
	sweep := s.sweep(t, "US,GB", 4)
	sweep.Watch = func(ingest.Event) { s.catalog.Close() } // after the first page
	sum, err := sweep.Execute(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "catalogue: ") ||
		strings.Contains(err.Error(), "context canceled") {
		t.Errorf("got %v", err)
	}
	if n := s.standin.Counts().Requests; n > 3 { // one page stored, one refused, one in flight
		t.Errorf("%d requests", n)
	}
	us := sum.Regions[0]
	if us.Outcome != ingest.Failed || us.Err() == nil || us.Pages != 1 || us.Units == 0 {
		t.Errorf("US: %+v", us)
	}
	_, err = s.sweep(t, "US", 4).Execute(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "catalogue: ") {
		t.Errorf("got %v", err)
	}
}

// TestTwoSweepsAtOnce: concurrent sweeps may request the same page, but never exceed the units,
// and all finish.
func TestTwoSweepsAtOnce(t *testing.T) {
	onLedgers(t, func(t *testing.T, open openFunc) {
		s := open(t, &standin.YouTube{}, units(40))
		second, err := catalog.Open(t.Context(), "sqlite://"+s.catalog.Path())
		must(t, err)
		defer second.Close()
		var wg sync.WaitGroup
		for i := range 4 {
			sweep := s.sweep(t, "US,GB,DE,FR", 4-i%2*2)
			if i%2 == 1 {
				sweep.Catalog = second
			}
			wg.Go(func() {
				sum, err := sweep.Execute(context.Background())
				if err != nil || sum.Outcome != ingest.Exhausted && sum.Outcome != ingest.Complete {
					t.Errorf("%s: %v", written(sum), err)
				}
			})
		}
		wg.Wait()
		if c := s.standin.Counts(); c.Requests > 40 {
			t.Errorf("%d requests", c.Requests)
		}
		for _, region := range []string{"US", "GB", "DE", "FR"} {
			got := s.current(t, region)
			s.whole(t, region, len(got))
			// A sweep of two pages may complete a chart that another has three pages of.
			if got != nil && (len(got) < 100 || len(got)%50 != 0) {
				t.Errorf("%s: %d videos", region, len(got))
			}
		}
		s.balanced(t)
	})
}

// TestOvertaken: a chart that another sweep resumed and completed counts as complete here too.
func TestOvertaken(t *testing.T) {
	s := plenty(t)
	stored := make(chan struct{}, 100)
	first := s.sweep(t, "US,GB", 4)
	first.Watch = func(ingest.Event) { stored <- struct{}{} }
	s.onRequest(func(r *http.Request) {
		if !r.URL.Query().Has("pageToken") {
			return
		}
		s.onRequest(nil)
		<-stored // the first page
		sum, err := s.sweep(t, "US", 1).Execute(context.Background())
		if err != nil || written(sum) != "complete US:1/50:0" {
			t.Errorf("%s, %v", written(sum), err)
		}
	})
	sum, err := first.Execute(t.Context())
	must(t, err)
	us := sum.Regions[0]
	if sum.Outcome != ingest.Complete || us.Pages != 1 || us.Videos != 50 || us.Units > 3 {
		t.Errorf("swept %s", written(sum))
	}
	s.whole(t, "US", 50)
	s.whole(t, "GB", 200)
}

// TestCatalogueIsGone: a sweep buys no page for a catalogue that was deleted while open. If it is
// deleted during a sweep, at most the page in flight is lost.
func TestCatalogueIsGone(t *testing.T) {
	s := plenty(t)
	var once sync.Once
	s.onRequest(func(*http.Request) {
		once.Do(func() {
			if err := os.Remove(s.catalog.Path()); err != nil {
				t.Error(err)
			}
		})
	})
	for _, units := range []int64{2, 0} {
		sum, err := s.sweep(t, "US,GB", 4).Execute(t.Context())
		if !errors.Is(err, sqlite.ErrGone) || sum.Units["default"] > units {
			t.Errorf("%d units, %v", sum.Units["default"], err)
		}
	}
}
