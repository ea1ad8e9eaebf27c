package plan

import (
	"testing"
	"time"
)

// TestWatch: a verdict is reported when it changes. A return to Lasts is reported once the bucket
// also lasts with the high load.
func TestWatch(t *testing.T) {
	var w VerdictWatch
	for i, step := range []struct {
		verdict Verdict
		unsure  bool // the bucket may run dry with the high load
		was     Verdict
		changed bool
	}{
		{Lasts, false, "", false},
		{Lasts, true, Lasts, false},
		{RunsDry, true, Lasts, true},
		{Lasts, true, RunsDry, false},
		{RunsDry, true, RunsDry, false},
		{Lasts, false, RunsDry, true},
		{Exhausted, true, Lasts, true},
		{Suspended, false, Exhausted, true},
		{Suspended, false, Suspended, false},
		{Lasts, true, Suspended, true},
	} {
		f := Forecast{Bucket: "default", Verdict: step.verdict}
		if step.unsure {
			f.Earliest = clock(t, "2026-11-21 20:00:00")
		}
		if was, changed := w.Changed(f); was != step.was || changed != step.changed {
			t.Errorf("step %d: %q, %v, want %q, %v", i, was, changed, step.was, step.changed)
		}
	}
	if _, changed := w.Changed(Forecast{Bucket: "search_list", Verdict: Exhausted}); !changed {
		t.Error("a bucket that is short at the start is not reported")
	}
}

// TestWatchLost: lost runs are reported once a day, however the verdict changes.
func TestWatchLost(t *testing.T) {
	var w VerdictWatch
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
		t.Error("a bucket that lasts must be short if and only if runs are lost")
	}
}

func TestUncertainText(t *testing.T) {
	const reset = ", before the reset at 2026-11-22 08:00Z"
	at := clock(t, "2026-11-21 20:00:00")
	f := Forecast{Bucket: "default", At: at, ResetAt: at.Add(12 * time.Hour), Verdict: RunsDry,
		DryAt:    at.Add(74 * time.Minute),
		Earliest: at.Add(50 * time.Minute), Latest: at.Add(125 * time.Minute)}
	for _, test := range []struct {
		change func()
		want   string
	}{
		{func() {}, "default runs dry at 21:14Z (20:50Z to 22:05Z)" + reset},
		{func() { f.Latest = time.Time{} },
			"default runs dry at 21:14Z (20:50Z at the earliest, or not at all)" + reset},
		{func() { f.Verdict, f.DryAt = Lasts, time.Time{} },
			"default lasts to the reset (dry at 20:50Z at the earliest)"},
		{func() { f.Earliest = time.Time{} }, "default lasts to the reset"},
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
	must(t, err)
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
