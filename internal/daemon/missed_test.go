package daemon_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/share"
)

func (w *env) addMissed(_ string, l share.Lane, ticks int64, last time.Time, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = append(w.lost, fmt.Sprintf("%d %s %s: %s", ticks, l.Name(), last.Format("15:04"), why))
}

// TestMissedTicks: ticks that came while no daemon ran are reported at the next start, once, and
// those of an outage when it ends. No tick is missed at the first start, or at a start while
// another daemon runs.
func TestMissedTicks(t *testing.T) {
	atNoon(t, func(w *env) {
		open := func() *proc {
			p := w.open(lanes(t, "0 * * * *", "UTC", "US", 0)...)
			p.config.Catalog, p.sweep.CatchUp = p.catalog, true
			return p.start()
		}
		expect := func(want ...string) {
			t.Helper()
			w.mu.Lock()
			defer w.mu.Unlock()
			if !slices.Equal(w.lost, want) {
				t.Errorf("missed %q, want %q", w.lost, want)
			}
		}
		open().stopAfter(10 * time.Minute) // ran 19:00
		expect()
		time.Sleep(3 * time.Hour)
		p := open() // 22:10
		time.Sleep(time.Minute)
		const down = "3 trending/US 22:00: no daemon ran"
		expect(down)
		q := open()
		time.Sleep(time.Minute)
		expect(down)
		q.stopAfter(time.Minute)
		p.mute.Store(true)
		time.Sleep(2 * time.Hour) // 00:13
		p.mute.Store(false)
		p.stopAfter(5 * time.Minute)
		expect(down, "1 trending/US 23:00: ledger, upstream or catalogue was away")
	})
}
