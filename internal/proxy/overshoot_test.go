package proxy_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/meter"
	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
)

// slow is an upstream that holds responses back until the test releases them. It bills the usage
// that each reports.
type slow struct {
	mu     sync.Mutex
	open   []chan int64 // of the calls in flight: what each is to take
	billed int64
}

// ServeHTTP waits for what the call is to take.
func (s *slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	takes := make(chan int64)
	s.mu.Lock()
	s.open = append(s.open, takes)
	s.mu.Unlock()
	units := <-takes
	s.mu.Lock()
	s.billed += units
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"usage":{"prompt_tokens":0,"completion_tokens":%[1]d,"total_tokens":%[1]d}}`,
		units)
}

func (s *slow) inFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// answerOne ends one of the calls.
func (s *slow) answerOne(nth int, units int64) {
	s.mu.Lock()
	one := s.open[nth]
	s.open = append(s.open[:nth], s.open[nth+1:]...)
	s.mu.Unlock()
	one <- units
}

// TestRefusedWhileAnotherRuns: a denial tells libraries not to retry, although a call in flight may
// free units long before Retry-After: they would sleep until then.
func TestRefusedWhileAnotherRuns(t *testing.T) {
	t.Parallel()
	api := new(slow)
	m := meteredOn(t, metertest.File(t), []quota.Limit{{Bucket: "requests", Units: 1,
		Window: quota.Window{Concurrent: true}}}, answering(api.ServeHTTP))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.ask(t, chatPath, chat(1, 1))
	}()
	await(t, func() bool { return api.inFlight() == 1 })
	resp, err := m.post(t.Context(), chatPath, chat(2, 1))
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	api.answerOne(0, 1)
	<-ended
}

// TestBoundOnOvershoot: calls begin while others are in flight, and end in any order, with less or
// more than their holds. The bill never exceeds the limit plus the bound that status prints: the
// most that the calls in flight can take beyond their holds.
func TestBoundOnOvershoot(t *testing.T) {
	t.Parallel()
	var beyond atomic.Int64
	t.Cleanup(func() {
		if beyond.Load() == 0 {
			t.Error("in no order was more billed than the limit: the test shows nothing")
		}
	})
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			beyond.Add(overshoot(t, rand.New(rand.NewPCG(seed, 1))))
		})
	}
}

// overshoot returns how much more than the limit was billed.
func overshoot(t *testing.T, random *rand.Rand) int64 {
	const limit, estimate, most = 3000, 150, 400
	api := new(slow)
	m := meteredOn(t, metertest.File(t), []quota.Limit{{Bucket: "tokens", Units: limit,
		Window: quota.Sliding(time.Hour)}}, answering(api.ServeHTTP))
	m.openai.Estimates = meter.Estimates{"openai.chat.completions.create/tokens": {Most: estimate}}
	var calls sync.WaitGroup
	var answered, denied atomic.Int64
	bound, sent := int64(0), 0
	for round := 0; denied.Load() == 0 || api.inFlight() > 0; round++ {
		for range 1 + random.IntN(6) {
			before := denied.Load() + int64(api.inFlight())
			calls.Go(func() {
				resp, err := m.post(t.Context(), chatPath, chat(1, 1))
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode == http.StatusTooManyRequests {
					denied.Add(1)
				} else {
					answered.Add(1)
				}
			})
			sent++
			await(t, func() bool { return denied.Load()+int64(api.inFlight()) > before })
			bound = max(bound, m.bound(t))
		}
		for range random.IntN(1 + api.inFlight()) {
			done := answered.Load()
			api.answerOne(random.IntN(api.inFlight()), 1+random.Int64N(most))
			await(t, func() bool { return answered.Load() > done })
			bound = max(bound, m.bound(t))
		}
		if round > 20 { // no more are sent that could pass
			for api.inFlight() > 0 {
				api.answerOne(0, most)
			}
			calls.Wait()
		}
		if api.mu.Lock(); api.billed > limit+bound {
			t.Errorf("%d were billed, the bound is %d + %d", api.billed, limit, bound)
		}
		api.mu.Unlock()
	}
	calls.Wait()
	m.awaitSettled(t)
	booked, held := m.openai.booked(t)
	if booked["tokens/gpt-4.1"] != api.billed || held != 0 {
		t.Errorf("%d booked, %d held, %d billed", booked["tokens/gpt-4.1"], held, api.billed)
	}
	t.Logf("%d calls, %d denied, %d billed, bound %d + %d", sent, denied.Load(), api.billed, limit,
		bound)
	return max(0, api.billed-limit)
}

// bound returns by how much the calls in flight can exceed limits, as status prints it.
func (m *metered) bound(t testing.TB) int64 {
	t.Helper()
	usage, err := m.openai.Budget.Usage(t.Context())
	must(t, err)
	for _, b := range usage.Buckets {
		if b.Bucket == "tokens/gpt-4.1" {
			return b.AtMost - b.Held
		}
	}
	return 0
}
