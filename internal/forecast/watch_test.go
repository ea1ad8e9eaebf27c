package forecast

import (
	"testing"
	"time"
)

// TestWatch: a verdict is reported when it changes, and does not flip around a chance of one
// half.
func TestWatch(t *testing.T) {
	var w Watch
	for i, step := range []struct {
		verdict Verdict
		chance  float64
		was     Verdict
		changed bool
	}{
		{Lasts, 0, "", false},
		{Lasts, 0.4, Lasts, false},
		{RunsDry, 0.55, Lasts, false},
		{RunsDry, 0.7, Lasts, true},
		{Lasts, 0.45, RunsDry, false},
		{RunsDry, 0.6, RunsDry, false},
		{Lasts, 0.3, RunsDry, true},
		{Exhausted, 1, Lasts, true},
		{Suspended, 0, Exhausted, true},
		{Suspended, 0, Suspended, false},
		{Lasts, 0.4, Suspended, true},
	} {
		was, changed := w.Changed(Forecast{Bucket: "default", Verdict: step.verdict,
			Chance: step.chance})
		if was != step.was || changed != step.changed {
			t.Errorf("step %d: %q, %v, want %q, %v", i, was, changed, step.was, step.changed)
		}
	}
	if _, changed := w.Changed(Forecast{Bucket: "search_list", Verdict: Exhausted}); !changed {
		t.Error("a bucket that is short from the first is not reported")
	}
}

// TestWatchLost: lost runs are reported once a day, however the verdict changes.
func TestWatchLost(t *testing.T) {
	var w Watch
	noon := clock(t, "2026-11-21 12:00:00")
	for i, step := range []struct {
		after   time.Duration
		verdict Verdict
		lost    int64
		was     Verdict
		changed bool
	}{
		{0, Lasts, 0, "", false},
		{time.Hour, Lasts, 3, Lasts, true},
		{2 * time.Hour, Lasts, 0, Lasts, false},
		{3 * time.Hour, Lasts, 4, Lasts, false},
		{4 * time.Hour, Exhausted, 4, Lasts, true},
		{5 * time.Hour, Lasts, 4, Exhausted, false}, // for a moment
		{6 * time.Hour, Exhausted, 4, Exhausted, false},
		{20 * time.Hour, Lasts, 4, Exhausted, true}, // the next day
		{21 * time.Hour, Lasts, 4, Lasts, false},
		{45 * time.Hour, Lasts, 0, Lasts, false},
	} {
		at := noon.Add(step.after)
		_, reset := window(t, "day").Bounds(at)
		f := Forecast{Bucket: "default", At: at, ResetAt: reset, Verdict: step.verdict,
			Lost: Work{Runs: step.lost}}
		if was, changed := w.Changed(f); was != step.was || changed != step.changed {
			t.Errorf("step %d: %q, %v, want %q, %v", i, was, changed, step.was, step.changed)
		}
	}
	if !(Forecast{Verdict: Lasts, Lost: Work{Runs: 1}}).Short() ||
		(Forecast{Verdict: Lasts}).Short() {
		t.Error("a bucket that lasts is short when runs are lost, and only then")
	}
}

func TestUncertainText(t *testing.T) {
	const reset = ", before the reset at 2026-11-22 08:00Z"
	at := clock(t, "2026-11-21 20:00:00")
	f := Forecast{Bucket: "default", At: at, ResetAt: at.Add(12 * time.Hour), Verdict: RunsDry,
		DryAt:    at.Add(74 * time.Minute),
		Earliest: at.Add(50 * time.Minute), Latest: at.Add(125 * time.Minute), Chance: 1}
	for _, test := range []struct {
		change func()
		want   string
	}{
		{func() {}, "default runs dry at 21:14Z (20:50Z to 22:05Z)" + reset},
		{func() { f.Latest, f.Chance = time.Time{}, 0.64 },
			"default runs dry at 21:14Z (from 20:50Z on, 64 % likely)" + reset},
		{func() { f.Verdict, f.DryAt, f.Chance = Lasts, time.Time{}, 0.2 },
			"default lasts to the reset (20 % likely to run dry, from 20:50Z on)"},
		{func() { f.Chance = 0.02 }, "default lasts to the reset"},
	} {
		test.change()
		if got := f.Text(); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

// TestTextIn: times appear in UTC and in the reader's zone, with the date if it is not today's.
func TestTextIn(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	f := Forecast{Bucket: "default", At: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Verdict: Exhausted, Limit: "default 24h"}
	for hour, want := range map[int]string{
		21: "default is exhausted (default 24h) until 21:00Z, 22:00 CET",
		23: "default is exhausted (default 24h) until 23:00Z, 2026-11-22 00:00 CET",
		25: "default is exhausted (default 24h) until 2026-11-22 01:00Z, 2026-11-22 02:00 CET",
	} {
		f.OpensAt = time.Date(2026, 11, 21, hour, 0, 0, 0, time.UTC)
		if got := f.TextIn(berlin); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
