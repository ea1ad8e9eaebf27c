package proxy_test

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"quotabudget/internal/proxy"
)

// TestBallast: the heap may grow by the ballast, unless GOMEMLIMIT bounds the memory.
func TestBallast(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	kept := proxy.Ballast()
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	runtime.GC()
	metrics.Read(goal)
	if least := uint64(2 * 64 << 20); goal[0].Value.Uint64() < least {
		t.Errorf("the heap is collected at %d bytes, not above %d", goal[0].Value.Uint64(), least)
	}
	runtime.KeepAlive(kept)
	debug.SetMemoryLimit(1 << 40)
	if kept := proxy.Ballast(); kept != nil {
		t.Errorf("a ballast of %d bytes beside a memory limit", len(kept))
	}
}
