package limit_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"quotabudget/internal/limit"
)

// BenchmarkDecision has 16 goroutines ask about one shared key and about separate keys, and
// compares x/time/rate, which has one limiter for all.
func BenchmarkDecision(b *testing.B) {
	const goroutines = 8 // for each of two processors
	b.Run("rate.Allow", func(b *testing.B) {
		l := rate.NewLimiter(1e6, 1e6)
		b.SetParallelism(goroutines)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.Allow()
			}
		})
	})
	for _, algorithm := range []limit.Algorithm{limit.Log, limit.Counter, limit.Fixed} {
		for _, keys := range []string{"one key", "own keys", "three policies"} {
			b.Run(string(algorithm)+"/"+keys, func(b *testing.B) {
				ctx := b.Context()
				m := limit.NewMemory()
				p := &limit.Policy{
					Name: "p", Units: 1000, Window: time.Minute, Algorithm: algorithm}
				q, r := *p, *p
				q.Name, r.Name = "q", "r"
				b.ReportAllocs()
				b.SetParallelism(goroutines)
				var next byte
				b.RunParallel(func(pb *testing.PB) {
					asks := []limit.Ask{{Policy: p, Cost: 1}}
					if !strings.HasPrefix(keys, "one") {
						next++
						asks[0].Key[0] = next
					}
					if strings.HasPrefix(keys, "three") {
						asks = append(asks, limit.Ask{Policy: &q, Key: asks[0].Key, Cost: 1},
							limit.Ask{Policy: &r, Cost: 1})
					}
					for pb.Next() {
						m.Take(ctx, asks)
					}
				})
			})
		}
	}
}

// BenchmarkMillionKeys reports the memory of a million keys with one charge each.
func BenchmarkMillionKeys(b *testing.B) {
	for _, algorithm := range []limit.Algorithm{limit.Log, limit.Counter} {
		b.Run(string(algorithm), func(b *testing.B) {
			for range b.N {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				m := limit.NewMemory()
				p := &limit.Policy{
					Name: "p", Units: 1000, Window: time.Minute, Algorithm: algorithm}
				asks, ctx := make([]limit.Ask, 1), b.Context()
				for i := range 1_000_000 {
					asks[0] = limit.Ask{Policy: p, Key: numbered(i), Cost: 1}
					m.Take(ctx, asks)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
				runtime.KeepAlive(m)
			}
		})
	}
}
