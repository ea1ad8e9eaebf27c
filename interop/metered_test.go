//go:build interop

package interop

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
)

// TestMetered is 50 streams side by side through two proxies with one ledger, by the clients of
// OpenAI and Anthropic and by curl, with queries of GitHub's client beside them. A third of the
// streams is cut by its client, one proxy is killed in the middle, and Redis is gone for two
// seconds.
//
// What is billed exceeds no limit by more than the holds may be short of the truth, the sum of
// most - held. In the end the ledger has booked what the stand-ins billed, to the unit, also of
// the streams that were cut. Of what the killed proxy had under way it has booked the most that it
// can have taken.
func TestMetered(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		m := newMetered(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
		m.play(t, func() {})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t, redistest.Options{AOF: true})
		m := newMetered(t, server.URL())
		m.play(t, func() {
			server.Kill()
			call := m.curl(t, "--retry", "9", "--retry-delay", "1", "--max-time", "60")
			must(t, call.Start())
			time.Sleep(2 * time.Second) // it is gone for that long, and this call asks it meanwhile
			server.Restart(t)
			if err := call.Wait(); err != nil {
				t.Errorf("a call that waits for Redis: %v", err)
			}
		})
	})
}

// play runs the streams and checks what became of them. outage happens while they are under way.
func (m *metered) play(t *testing.T, outage func()) {
	steady := m.node(t, m.steady, plan{Models: map[string]string{
		"openai": "gpt-a", "anthropic": "claude-opus-4-9"}, Streams: 20, Queries: 5})
	doomed := m.node(t, m.doomed, plan{Models: map[string]string{
		"openai": "gpt-b", "anthropic": "claude-none-9"}, Streams: 20})
	steady.await(t, "warm")
	doomed.await(t, "warm")

	steady.proceed(t)
	doomed.proceed(t)
	var curls sync.WaitGroup
	begun := make(chan string, 10) // what each of curl's streams said first
	for i := range cap(begun) {
		curls.Go(func() { m.curlStream(t, i, begun) })
	}
	steady.await(t, "begun")
	doomed.await(t, "begun")
	for range cap(begun) {
		<-begun
	}

	held := m.held(t)
	m.doomed.kill()
	outage()
	seen, lost := steady.end(t), doomed.end(t)
	curls.Wait()
	t.Logf("steady: %+v", seen)
	t.Logf("killed: %+v", lost)
	if seen.Cut == 0 || seen.Denied == 0 || seen.Whole == 0 || seen.Broken > 0 || lost.Broken == 0 {
		t.Errorf("the streams did not end as they should: %+v, and of the killed proxy %+v",
			seen, lost)
	}
	m.settled(t)
	m.within(t, held)
	m.agree(t, held)
}

// within checks that no more was billed than the limits and what the holds may be short of.
func (m *metered) within(t *testing.T, held []hold) {
	t.Helper()
	billed := m.billed(t)
	over := false
	for bucket, units := range m.limits {
		for part, n := range billed {
			if whole(part) != bucket {
				continue
			}
			var short int64
			for _, h := range held {
				if h.Bucket == part {
					short += max(0, h.Most-h.Left)
				}
			}
			t.Logf("%s: %d billed, a limit of %d, and %d at most beyond it", part, n, units, short)
			over = over || n > units
			if n > units+short {
				t.Errorf("%s: %d billed, which is more than the limit of %d and the bound of %d",
					part, n, units, short)
			}
		}
	}
	if !over {
		t.Error("nothing was billed beyond a limit, so the bound was not tried")
	}
}

// agree compares the ledger with what the stand-ins billed, bucket by bucket. A hold of the killed
// proxy has lapsed into an entry that has its ID, of the most that the call could take. The
// stand-in billed as much for it as for any other stream.
func (m *metered) agree(t *testing.T, held []hold) {
	t.Helper()
	holds := map[string]bool{} // whether of the killed proxy, by the models of its client
	most := map[string]int64{} // that each hold can take, by ID and bucket
	for _, h := range held {
		buckets, id, _ := strings.Cut(h.Reservation, ".")
		holds[id] = strings.Contains(buckets, "/gpt-b") ||
			strings.Contains(buckets, "/claude-none-9")
		most[id+" "+h.Bucket] = max(h.Left, h.Most)
	}
	ledger, over, stream := map[string]int64{}, map[string]int64{}, map[string]int64{}
	lapsed := map[string][]int64{}
	for _, e := range m.entries(t) {
		ledger[e.Bucket] += e.Units
		if holds[e.ID] {
			lapsed[e.Bucket] = append(lapsed[e.Bucket], e.Units)
			bucket, _, _ := strings.Cut(e.Bucket, " of ") // money of openai
			if want := most[e.ID+" "+bucket]; e.Units != want {
				t.Errorf("%s: a hold of at most %d lapsed into %d", e.Bucket, want, e.Units)
			}
		} else {
			stream[whole(e.Bucket)] = max(stream[whole(e.Bucket)], e.Units)
		}
	}
	for bucket, all := range lapsed {
		for _, units := range all {
			over[bucket] += units - stream[whole(bucket)]
		}
		t.Logf("%s: %d holds lapsed, %d units above the truth", bucket, len(all), over[bucket])
		if over[bucket] < 0 {
			t.Errorf("%s: %d units of lapsed holds are missing", bucket, -over[bucket])
		}
	}
	billed := m.billed(t)
	for bucket := range ledger {
		billed[bucket] += 0 // what the ledger alone has is wrong, too
	}
	for _, bucket := range slices.Sorted(maps.Keys(billed)) {
		if got := ledger[bucket] - over[bucket]; got != billed[bucket] {
			t.Errorf("%s: the ledger has %d, and lapsed holds are %d above the truth: the stand-in "+
				"billed %d", bucket, ledger[bucket], over[bucket], billed[bucket])
		}
	}
	if len(lapsed["tokens/gpt-b"]) == 0 || len(lapsed["output/claude-none-9"]) == 0 {
		t.Errorf("no hold of the killed proxy lapsed: %v", lapsed)
	}
	t.Logf("the ledger has %v", ledger)
}
