package forecast

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// TestADayWithEnoughForAllDoesNotRunDry: a day with enough for all is not simulated. Simulating
// it gives the same result.
func TestADayWithEnoughForAllDoesNotRunDry(t *testing.T) {
	const at = "2026-11-21 20:00:01"
	some := flow(clock(t, at).Add(-48*time.Hour), clock(t, at), time.Minute, 1)
	for _, limits := range []string{"%d day", "%d day, %[1]d 24h, 9 1m"} {
		enough, scarce := 0, 0
		for units := 400; units <= 4000; units += 200 {
			in := bucket(t, at, fmt.Sprintf(limits, units), "*/30 * * * * US BR", some)
			o := newOutlook(in, nil)
			for _, d := range o.days() {
				var said, walked trace
				o.play(d, &said)
				w := walker{outlook: o, trace: &walked}
				if dry := w.walk(d); dry != d.dry || !reflect.DeepEqual(said, walked) {
					t.Fatalf("%d units: day %d runs dry at %d, and walked at %d: %v, and %v",
						units, d.seed, d.dry, dry, said, walked)
				}
				if o.isEnough(d) {
					enough++
				} else {
					scarce++
				}
			}
		}
		if enough < 100 || scarce < 100 {
			t.Errorf("%d days with enough, %d without", enough, scarce)
		}
	}
}

// TestEnoughForAllIsToTheUnit: 23 ticks of two lanes want 184 units; with one less the last run
// is cut off.
func TestEnoughForAllIsToTheUnit(t *testing.T) {
	for units, want := range map[int]bool{184: true, 183: false} {
		in := bucket(t, "2026-11-21 20:00:01", fmt.Sprint(units, " day"), "*/30 * * * * US BR")
		if got := newOutlook(in, nil).isEnough(day{}); got != want {
			t.Errorf("%d units are enough: %v, want %v", units, got, want)
		}
	}
}
