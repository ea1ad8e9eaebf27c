package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/ingest"
	"quotabudget/internal/standin"
	"quotabudget/internal/youtube"
)

// story is a random course of events for a sweep and the one after it.
type story struct {
	kind    string
	totals  map[string]int // videos of each chart
	list    string         // regions swept; the upstream may not know one of them
	before  string         // regions swept two hours before
	faults  []string       // faults during the first sweep
	dear    bool           // charge more than the pages that arrive
	limit   int64
	cancel  int // number of the request during which a signal arrives; 0 for none
	readers int
	slow    [16]time.Duration // latencies
}

const pagesWanted = 4

func newStory(seed uint64) story {
	rnd := rand.New(rand.NewPCG(seed, 1))
	st := story{totals: make(map[string]int), limit: 100_000, readers: 2 + rnd.IntN(5)}
	all := strings.Split(eight, ",")
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:3+rnd.IntN(6)]
	need := 0
	for _, region := range all {
		st.totals[region] = []int{0, 1, 3, 5, 8, 10, 12, 12, 12}[rnd.IntN(9)]
		need += max(1, (st.totals[region]+2)/3)
	}
	list := slices.Clone(all)
	if rnd.IntN(3) == 0 {
		list = slices.Insert(list, rnd.IntN(len(list)), "AQ")
		need++
	}
	st.list = strings.Join(list, ",")
	st.before = strings.Join(all[:rnd.IntN(len(all))], ",")
	for i := range st.slow {
		st.slow[i] = time.Duration(10+rnd.IntN(3000)) * time.Millisecond
	}
	region := func() string { return all[rnd.IntN(len(all))] }
	st.kind = []string{"faults", "short", "stopped", "refused"}[seed%4]
	mild := strings.Fields("503:%s#2*2 503:%s*3 drop:%s#1*1 429:%s*1 hang:%s#2*1 cut:%s*1 " +
		"400-token:%s#2*1")
	fatal := strings.Fields("503:%s 503:%s#2 404-chart:%s 400-token:%s#3 hang:%s 429:%s#3")
	one := func(formats []string) string {
		return fmt.Sprintf(formats[rnd.IntN(len(formats))], region())
	}
	switch st.kind {
	case "faults":
		for range 1 + rnd.IntN(4) {
			st.faults = append(st.faults, one(slices.Concat(mild, fatal)))
		}
	case "short":
		st.limit = int64(1 + rnd.IntN(max(need-1, 1)))
		if st.dear = rnd.IntN(2) == 0; st.dear {
			st.faults = []string{one(mild), one(mild)}
		}
	case "stopped":
		st.cancel = 1 + rnd.IntN(need)
	case "refused":
		st.faults = []string{fmt.Sprintf("403-blocked@%d-", 1+rnd.IntN(need))}
	}
	return st
}

// result is the outcome of a story.
type result struct {
	err         error
	first, then ingest.Summary
	asked       []string // by the first sweep
	answered    int      // of asked, those that got a page
	charts      map[string][]string
}

// play runs the story with the given number of readers.
func (st story) play(t *testing.T, readers int) (got result) {
	charts := standin.Generator{Totals: st.totals, Days: 1}.Charts()
	inBubble(t, &standin.YouTube{Charts: charts}, st.limit+1000, func(t *testing.T, s *env) {
		if st.before != "" {
			s.sweep(t, st.before, pagesWanted).Execute(t.Context())
		}
		time.Sleep(2 * time.Hour)
		used := int64(len(strings.Fields(s.requests())))
		s.pages = 0
		s.budget.Limits = units(used + st.limit)
		s.standin.SetFaults(st.faults...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var arrived atomic.Int64
		s.onRequest(func(r *http.Request) {
			if int(arrived.Add(1)) == st.cancel {
				cancel()
			}
			for i, c := range nameOf(r) {
				time.Sleep(st.slow[(int(c)+i)%len(st.slow)])
			}
		})
		got.first, got.err = s.withReaders(t, st.list, pagesWanted, readers).Execute(ctx)
		got.asked, got.answered = strings.Fields(s.requests()), s.pages
		s.standin.SetFaults()
		s.budget.Limits = units(100_000)
		time.Sleep(time.Minute)
		var err error
		got.then, err = s.withReaders(t, st.list, pagesWanted, readers).Execute(t.Context())
		must(t, err)
		s.balanced(t)
		got.charts = make(map[string][]string)
		for region := range st.totals {
			got.charts[region] = s.current(t, region)
			// until the end of the upstream's day
			if missing := slices.Contains(st.faults, "404-chart:"+region); missing {
				continue
			}
			s.whole(t, region, st.totals[region])
		}
	})
	return got
}

// TestAsOneReader: in every story, several readers charge, store and report the same as one.
// Where a sweep is cut short, each reader may leave one half chart, and the next sweep resumes
// it.
func TestAsOneReader(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			st := newStory(seed)
			one, many := st.play(t, 1), st.play(t, st.readers)
			st.compare(t, one, many)
			st.check(t, many)
			if t.Failed() {
				for _, got := range []result{one, many} {
					t.Logf("%+v\n%s, %v\n%v\n%s", st, written(got.first), got.err, got.asked,
						written(got.then))
				}
			}
		})
	}
}

// compare compares the results of many readers with those of one.
func (st story) compare(t *testing.T, one, many result) {
	t.Helper()
	sorted := func(asked []string) []string { return slices.Sorted(slices.Values(asked)) }
	kindOne, _ := youtube.KindOf(one.err)
	kindMany, _ := youtube.KindOf(many.err)
	switch {
	case one.err == nil && st.cancel == 0 && !(st.kind == "short" && st.dear):
		if many.err != nil || written(many.first) != written(one.first) ||
			!slices.Equal(regionsOf(many.then), regionsOf(one.then)) ||
			!slices.Equal(sorted(many.asked), sorted(one.asked)) {
			t.Error("many readers come to something else")
		}
	case st.kind == "short":
		if many.err != nil || many.first.Outcome != one.first.Outcome ||
			len(many.asked) != len(one.asked) {
			t.Error("another end of the units")
		}
	case one.err != nil && st.kind == "refused":
		if kindMany != kindOne {
			t.Error("another end by a key that is refused")
		}
	// many readers may get an answer from one region after one reader would have given up
	case st.kind == "faults":
		if many.err != nil && kindMany != kindOne || complete(many.first) < complete(one.first) {
			t.Error("many readers give up before one does")
		}
	}
}

// regionsOf returns the results by region name: charts completed at different moments are visited
// in a different order.
func regionsOf(sum ingest.Summary) []string {
	return slices.Sorted(slices.Values(strings.Fields(written(sum))))
}

func complete(sum ingest.Summary) (n int) {
	for _, r := range sum.Regions {
		if r.Outcome == ingest.Complete {
			n++
		}
	}
	return n
}

// check checks what every result must satisfy.
func (st story) check(t *testing.T, got result) {
	t.Helper()
	var sum int64
	half, stored := 0, 0
	for _, r := range got.first.Regions {
		sum += r.Units
		stored += r.Pages
		if r.Outcome == ingest.Partial {
			half++
		}
	}
	if asked := int64(len(got.asked)); sum != asked || got.first.Units["default"] != asked {
		t.Errorf("%d units of regions, %v in all, %d requests", sum, got.first.Units, asked)
	}
	if got.first.Outcome == ingest.Exhausted && sum != st.limit {
		t.Errorf("%d units of %d", sum, st.limit)
	}
	ended := st.kind == "stopped" || st.kind == "refused"
	if half > st.readers || ended && stored != got.answered {
		t.Errorf("%d charts are half, %d pages of %d stored", half, stored, got.answered)
	}
	if st.cancel > 0 && (got.err != nil || len(got.asked) > st.cancel+st.readers-1) {
		t.Errorf("%d requests, stopped at the %dth: %v", len(got.asked), st.cancel, got.err)
	}
	st.checkResumed(t, got)
}

// checkResumed compares the second sweep with the first: it resumes half charts before it begins
// new ones.
func (st story) checkResumed(t *testing.T, got result) {
	t.Helper()
	then := make(map[string]ingest.Region)
	place := make(map[string]int)
	for i, r := range got.then.Regions {
		then[r.Region], place[r.Region] = r, i
	}
	for _, r := range got.first.Regions {
		half, now := r.Outcome == ingest.Partial, then[r.Region]
		if half && now.Units != int64(now.Pages-r.Pages) {
			t.Errorf("%s had %d pages, then %+v", r.Region, r.Pages, now)
		}
		for _, other := range got.first.Regions {
			before := place[other.Region] < place[r.Region]
			if half && other.Outcome == ingest.Skipped && other.Err() == nil && before {
				t.Errorf("%s is half, and comes after %s, not begun", r.Region, other.Region)
			}
		}
		if r.Outcome == ingest.Skipped && r.Err() != nil &&
			!errors.Is(r.Err(), context.Canceled) && st.kind != "short" {
			t.Errorf("%s was left out: %v", r.Region, r.Err())
		}
	}
}
