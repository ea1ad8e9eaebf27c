package proxy_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestEstimatesByModel checks that calls to one model teach nothing about another one, neither in
// the process that made them nor in one that reads them from the ledger.
func TestEstimatesByModel(t *testing.T) {
	t.Parallel()
	l := onFile(t)
	m := meteredOn(t, l, nil, quiet)
	for i := range 25 {
		resp, err := m.post(t.Context(), "/openai/v1/chat/completions", chat(i, 5))
		must(t, err)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	m.agree(t, "openai")
	slow := func(m *metered) { m.standins["openai"].Pace = 20 * time.Millisecond }
	m.standins["openai"].Pace = 20 * time.Millisecond
	again := meteredOn(t, l, nil, quiet, slow)
	for name, m := range map[string]*metered{"the same": m, "another": again} {
		for _, c := range []struct {
			change, to string
			learned    bool
		}{
			{"gpt-4.1", "gpt-4.1", true}, {"gpt-4.1", "o1-pro", false},
			{`"stream":true`, `"stream":true,"service_tier":"flex"`, false},
		} {
			body := strings.Replace(chat(99, 5), c.change, c.to, 1)
			resp, err := m.post(t.Context(), "/openai/v1/chat/completions", body)
			must(t, err)
			holds, err := l.Reservations(t.Context(), "openai", "money")
			must(t, err)
			if len(holds) != 1 || (holds[0].Left < holds[0].Most/2) != c.learned {
				t.Errorf("%s process, %s: held %+v", name, c.to, holds)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			m.settled(t)
		}
	}
}

// taking is an upstream whose calls take their usual units until the test makes them take the most.
type taking struct {
	seed   *rand.Rand
	mu     sync.Mutex
	most   int64 // 0: little
	billed int64
	open   atomic.Int64
	gate   chan struct{} // closed when calls may end
}

// ServeHTTP bills a call.
func (u *taking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.open.Add(1)
	u.mu.Lock()
	units, gate := 1+u.seed.Int64N(60), u.gate
	if u.most > 0 {
		units = int64(len(body)) + u.most
	}
	u.billed += units
	u.mu.Unlock()
	if gate != nil {
		<-gate
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"usage":{"prompt_tokens":0,"completion_tokens":%[1]d,"total_tokens":%[1]d}}`,
		units)
}

// TestBoundForAnyHistory checks that calls that are sent at once, by two proxies with one ledger,
// pass a limit by no more than the bound that was known before they were sent, whatever calls took
// before.
func TestBoundForAnyHistory(t *testing.T) {
	t.Parallel()
	var beyond atomic.Int64
	t.Cleanup(func() {
		if beyond.Load() == 0 {
			t.Error("the limit was never passed: the test shows nothing")
		}
	})
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			limits := []quota.Limit{{Bucket: "tokens", Units: 15_000 + random.Int64N(20_000),
				Window: quota.Sliding(time.Hour)}}
			limit, bound := limits[0].Units, quota.Slack(limits)
			api := &taking{seed: random}
			web := httptest.NewServer(api)
			t.Cleanup(web.Close)
			to, err := url.Parse(web.URL)
			must(t, err)
			l := onFile(t)
			var both []*metered
			for range 2 {
				both = append(both, meteredOn(t, l, limited{"openai": limits}, quiet,
					func(m *metered) {
						m.gate("openai").Host, m.proxy.Upstreams[1].Endpoint = to.Host, to
					}))
			}
			send := func(i int) int {
				resp, err := both[i%2].post(t.Context(), "/openai/v1/chat/completions", chat(1, 1))
				if err != nil {
					t.Error(err)
					return 0
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				return resp.StatusCode
			}
			for i := range 30 + random.IntN(60) {
				if status := send(i); status != 200 {
					t.Fatal(status)
				}
			}
			both[0].settled(t)
			both[1].settled(t)
			api.mu.Lock()
			api.most, api.gate = 1400, make(chan struct{}) // as much as the price list allows for
			api.mu.Unlock()
			api.open.Store(0)
			var denied atomic.Int64
			var calls sync.WaitGroup
			for i := range 60 {
				calls.Go(func() {
					if send(i) == http.StatusTooManyRequests {
						denied.Add(1)
					}
				})
			}
			await(t, func() bool { return api.open.Load()+denied.Load() == 60 })
			close(api.gate)
			calls.Wait()
			t.Logf("limit %d, bound %d, billed %d, %d denied", limit, bound, api.billed,
				denied.Load())
			if api.billed > limit+bound || denied.Load() == 0 {
				t.Errorf("%d were billed under a limit of %d, the bound is %d", api.billed, limit,
					bound)
			}
			beyond.Add(max(0, api.billed-limit))
		})
	}
}
