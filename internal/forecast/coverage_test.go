package forecast

import (
	"strings"
	"testing"
)

// The interval that claims eight in ten of the days holds in about as many, early and late in the
// day, and on days of a kind that was not looked at when the forecast was made.
func TestCoverage(t *testing.T) {
	for _, kinds := range [][]string{mixed, {"fourteen"}, {"wander"}} {
		t.Run(strings.Join(kinds, "-"), func(t *testing.T) {
			t.Parallel()
			inside, all := 0, 0
			for _, a := range replay(firstSeed, kinds, theDay(t)) {
				if a.covers() {
					inside++
				}
				all++
			}
			if part := float64(inside) / float64(all); part < 0.70 || part > 0.92 {
				t.Errorf("holds in %d of %d days, which is %.0f %%", inside, all, 100*part)
			}
		})
	}
}
