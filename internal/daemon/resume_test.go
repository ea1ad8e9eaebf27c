package daemon_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// four returns lanes of one region whose charts have four pages.
func four(t *testing.T, spec string) []share.Lane {
	t.Helper()
	all := lanes(t, spec, "UTC", "JP", 0)
	all[0].Pages = 4
	return all
}

// narrow adds a limit with a short window.
func (w *world) narrow(units int64, window time.Duration) {
	w.limits = append(w.limits, quota.Limit{Bucket: quota.DefaultBucket, Units: units,
		Window: quota.Sliding(window)})
}

// expectAsked compares the requests since its last call with "19:00:00 JP 1, 19:00:00 JP 2".
func (w *world) expectAsked(want string) {
	w.Helper()
	if got := strings.Join(w.taken(), ", "); got != want {
		w.Errorf("asked for %s\nwant %s\n%s", got, want, strings.Join(w.log, ""))
	}
}

// halves returns the incomplete charts of JP, newest first, with their pages:
// "trending/JP/2026-06-01T19:00:00Z 3".
func (w *world) halves() string {
	w.Helper()
	charts, err := w.look.catalog.Charts(context.Background(), "JP", 0)
	must(w, err)
	var halves []string
	for _, c := range charts {
		if c.CompletedAt.IsZero() {
			halves = append(halves, fmt.Sprint(c.Run, " ", c.Pages))
		}
	}
	return strings.Join(halves, ", ")
}

// TestResume: within a quarter of an hour of its first page, the next tick resumes a chart that
// was cut short; after that it begins a new one. Neither tick runs again.
func TestResume(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, spec  string
		units       int64
		window      time.Duration
		first, next string // requests of the first tick, and of the others
		runs        string // runs with a complete chart
		halves      string
	}{
		{"five minutes", "0,5 19 * * *", 3, 4 * time.Minute,
			"19:00:00 JP 1, 19:00:00 JP 2, 19:00:00 JP 3", "19:05:00 JP 4", "19:00", ""},
		{"a quarter of an hour", "0,15 19 * * *", 3, 4 * time.Minute,
			"19:00:00 JP 1, 19:00:00 JP 2, 19:00:00 JP 3", "19:15:00 JP 4", "19:00", ""},
		{"a minute more", "0,16 19 * * *", 3, 10 * time.Minute,
			"19:00:00 JP 1, 19:00:00 JP 2, 19:00:00 JP 3",
			"19:16:00 JP 1, 19:16:00 JP 2, 19:16:00 JP 3", "",
			"trending/JP/2026-06-01T19:16:00Z 3, trending/JP/2026-06-01T19:00:00Z 3"},
		{"from tick to tick", "0,5,10,15 19 * * *", 1, 4 * time.Minute,
			"19:00:00 JP 1", "19:05:00 JP 2, 19:10:00 JP 3, 19:15:00 JP 4", "19:00", ""},
		{"but not for ever", "0,6,12,18 19 * * *", 1, 4 * time.Minute,
			"19:00:00 JP 1", "19:06:00 JP 2, 19:12:00 JP 3, 19:18:00 JP 1", "",
			"trending/JP/2026-06-01T19:18:00Z 1, trending/JP/2026-06-01T19:00:00Z 3"},
		{"past one that gets nothing", "0,5,10 19 * * *", 3, 9 * time.Minute,
			"19:00:00 JP 1, 19:00:00 JP 2, 19:00:00 JP 3", "19:10:00 JP 4", "19:00", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			atNoon(t, func(w *world) {
				w.narrow(c.units, c.window)
				all := four(t, c.spec)
				p := w.open(all...).start()
				time.Sleep(2 * time.Second)
				w.expectAsked(c.first)
				p.stopAfter(20 * time.Minute)
				w.expectAsked(c.next)
				runs := w.runs("JP")
				if len(runs) != len(strings.Fields(c.runs)) || c.runs != "" &&
					runs["trending/JP/2026-06-01T"+c.runs+":00Z"] != 1 {
					t.Errorf("complete: %v, want %s", runs, c.runs)
				}
				if halves := w.halves(); halves != c.halves {
					t.Errorf("half: %s, want %s", halves, c.halves)
				}
				for tick := range all[0].Ticks(noon.Add(-time.Second), noon.Add(20*time.Minute)) {
					if state := w.claim(tick.ID(), time.Minute); state != quota.ClaimDone {
						t.Errorf("%s is not done: %v", tick.ID(), state)
					}
				}
			})
		})
	}
}

// TestResumedIsNotRunAgain: a daemon that starts just then finds the ticks done that share a chart.
func TestResumedIsNotRunAgain(t *testing.T) {
	atNoon(t, func(w *world) {
		w.narrow(2, 100*time.Second)
		all := four(t, "*/2 19 * * *")
		p := w.open(all...)
		p.start().stopAfter(2*time.Minute + 30*time.Second)
		w.expectAsked("19:00:00 JP 1, 19:00:00 JP 2, 19:02:00 JP 3, 19:02:00 JP 4")
		again := w.restart(all...)
		again.stopAfter(80 * time.Second)
		w.expectAsked("")
		if runs := w.runs("JP"); len(runs) != 1 || runs["trending/JP/2026-06-01T19:00:00Z"] != 1 {
			t.Errorf("complete: %v", runs)
		}
	})
}
