// Package bench compares the limiter in memory with other libraries. It is a module of its own, so
// that the programs do not depend on them. make bench runs it.
package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/go-chi/httprate"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"quotabudget/internal/limit"
)

// library is a compared library, as a function that decides for a key, and as middleware that
// limits by the caller's address.
type library struct {
	name   string
	decide func(units int64, window time.Duration) func(key string) bool
	wrap   func(units int64, window time.Duration) func(http.Handler) http.Handler
}

func ours(algorithm limit.Algorithm) library {
	policy := func(units int64, window time.Duration) limit.Policy {
		return limit.Policy{Name: "p", Units: units, Window: window, Algorithm: algorithm}
	}
	return library{"this " + string(algorithm),
		func(units int64, window time.Duration) func(string) bool {
			m, p := limit.NewMemory(), policy(units, window)
			return func(key string) bool {
				var k limit.Key
				copy(k[:], key)
				asks := [1]limit.Ask{{Policy: &p, Key: k, Cost: 1}}
				allowed, _ := m.Take(context.Background(), asks[:])
				return allowed
			}
		},
		func(units int64, window time.Duration) func(http.Handler) http.Handler {
			known := &limit.Known{}
			g := &limit.Guard{
				Limits: []limit.Rule{{Policy: policy(units, window), By: limit.ByClient}},
				Store:  limit.NewMemory(), Caller: known.Of,
				Route: func(*http.Request) string { return "" },
			}
			return g.Wrap
		}}
}

func libraries() []library {
	rateOf := func(units int64, window time.Duration) ulule.Rate {
		return ulule.Rate{Limit: units, Period: window}
	}
	perSecond := func(units int64, window time.Duration) float64 {
		return float64(units) / window.Seconds()
	}
	return []library{
		ours(limit.Log), ours(limit.Counter), ours(limit.Fixed),
		{"ulule/limiter",
			func(units int64, window time.Duration) func(string) bool {
				l := ulule.New(memory.NewStore(), rateOf(units, window))
				return func(key string) bool {
					c, err := l.Get(context.Background(), key)
					return err == nil && !c.Reached
				}
			},
			func(units int64, window time.Duration) func(http.Handler) http.Handler {
				return stdlib.NewMiddleware(
					ulule.New(memory.NewStore(), rateOf(units, window))).Handler
			}},
		{"tollbooth",
			func(units int64, window time.Duration) func(string) bool {
				l := tollbooth.NewLimiter(perSecond(units, window), nil).SetBurst(int(units))
				return func(key string) bool {
					return tollbooth.LimitByKeys(l, []string{key}) == nil
				}
			},
			func(units int64, window time.Duration) func(http.Handler) http.Handler {
				l := tollbooth.NewLimiter(perSecond(units, window), nil).SetBurst(int(units))
				return func(next http.Handler) http.Handler {
					return tollbooth.LimitHandler(l, next)
				}
			}},
		{"httprate",
			func(units int64, window time.Duration) func(string) bool {
				l := httprate.NewRateLimiter(int(units), window)
				r, _ := http.NewRequest("GET", "/", nil)
				return func(key string) bool { return !l.OnLimit(&writer{}, r, key) }
			},
			func(units int64, window time.Duration) func(http.Handler) http.Handler {
				return httprate.LimitByIP(int(units), window)
			}},
	}
}

// writer is an http.ResponseWriter that discards the response.
type writer struct{ header http.Header }

func (w *writer) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}
func (*writer) Write(b []byte) (int, error)       { return len(b), nil }
func (*writer) WriteString(s string) (int, error) { return len(s), nil }
func (*writer) WriteHeader(int)                   {}

var _ io.StringWriter = (*writer)(nil)

const goroutines = 16

// perProcessor makes 16 goroutines on two processors.
const perProcessor = goroutines / 2

// BenchmarkDecision has 16 goroutines ask for decisions, all for one key or each for its own key.
func BenchmarkDecision(b *testing.B) {
	b.Run("one key/x/time/rate", func(b *testing.B) {
		l := rate.NewLimiter(1e9, 1e9)
		b.SetParallelism(perProcessor)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.Allow()
			}
		})
	})
	for _, own := range []bool{false, true} {
		for _, l := range libraries() {
			name := map[bool]string{false: "one key/", true: "own keys/"}[own] + l.name
			b.Run(name, func(b *testing.B) {
				decide := l.decide(1000, time.Minute)
				var n atomic.Int64
				b.SetParallelism(perProcessor)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					key := "somebody"
					if own {
						key = fmt.Sprint(n.Add(1), " somebody")
					}
					for pb.Next() {
						decide(key)
					}
				})
			})
		}
	}
}

// BenchmarkMiddleware sends requests from 16 clients.
func BenchmarkMiddleware(b *testing.B) {
	for _, l := range libraries() {
		b.Run(l.name, func(b *testing.B) {
			next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			handler := l.wrap(1_000_000_000, time.Minute)(next)
			var n atomic.Int64
			b.SetParallelism(perProcessor)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r, _ := http.NewRequest("GET", "/", nil)
				r.RemoteAddr = fmt.Sprintf("10.0.0.%d:1234", n.Add(1)%250)
				for pb.Next() {
					handler.ServeHTTP(&writer{}, r)
				}
			})
		})
	}
}

// TestBoundary asks each library, under a limit of 50 in a second, as a caller would who knows how
// it works: once at the beginning of a second, and without a break around its end. It prints the
// most calls that were allowed in any second.
func TestBoundary(t *testing.T) {
	const units, window = 50, time.Second
	most := map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	begin := time.Now().Truncate(window).Add(2 * window)
	for _, l := range libraries() {
		decide := l.decide(units, window)
		all.Go(func() {
			var allowed []time.Time
			ask := func(at time.Duration) {
				time.Sleep(time.Until(begin.Add(at)))
				if before := time.Now(); decide("somebody") {
					allowed = append(allowed, before)
				}
			}
			ask(time.Millisecond)
			const from, to = 900 * time.Millisecond, 1895 * time.Millisecond
			for at := from; at < to; at += 500 * time.Microsecond {
				ask(at)
			}
			n := 0
			for i, last := range allowed {
				first, _ := slices.BinarySearchFunc(allowed, last.Add(-window),
					func(a, b time.Time) int { return a.Compare(b) })
				n = max(n, i-first+1)
			}
			mu.Lock()
			most[l.name] = n
			mu.Unlock()
		})
	}
	all.Wait()
	for _, l := range libraries() {
		t.Logf("%-16s %3d in a second, of %d", l.name, most[l.name], units)
	}
	if n := most["this log"]; n > units {
		t.Errorf("the log let %d pass", n)
	}
}
