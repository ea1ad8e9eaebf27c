package plan

import (
	"math"
	"strings"
	"sync"
	"testing"
)

// TestCoverage: the eight-in-ten interval holds on seven to nine of ten days over all kinds, and on
// about as many of each kind. BenchmarkForecast covers more months.
func TestCoverage(t *testing.T) {
	both := dayAnd24h(t)
	var all []prediction
	var lock sync.Mutex
	t.Run("each", func(t *testing.T) {
		for i := range 2 * len(kinds) {
			kinds, limits := kinds[i/2], both[:1+i%2]
			t.Run(strings.Join(kinds, "-"), func(t *testing.T) {
				t.Parallel()
				of := replay(t, uint64(1000+i/2), kinds, limits)
				if part := coverage(of); math.Abs(part-0.8) > 0.15 {
					t.Errorf("the interval holds on %.0f %% of the days", 100*part)
				}
				lock.Lock()
				defer lock.Unlock()
				all = append(all, of...)
			})
		}
	})
	if part := coverage(all); math.Abs(part-0.8) > 0.1 {
		t.Errorf("the interval holds on %.1f %% of all days", 100*part)
	}
}
