package forecast

import (
	"strings"
	"testing"
)

// The interval that claims eight in ten of the days holds in about as many, whatever kind they are
// of. How many in all: see BenchmarkForecast.
func TestCoverage(t *testing.T) {
	for i, kinds := range kinds {
		t.Run(strings.Join(kinds, "-"), func(t *testing.T) {
			t.Parallel()
			if part := coverage(replay(t, uint64(1000+i), kinds, theDay(t))); part < 0.70 ||
				part > 0.90 {
				t.Errorf("it holds in %.0f %% of the days", 100*part)
			}
		})
	}
}
