package plan

import (
	"testing"
	"time"
)

// TestWatch: a verdict is reported when it changes. A return from RunsDry to Lasts is reported once
// the bucket also lasts with the high load. Lost runs are reported once a day, whatever the
// verdict.
func TestWatch(t *testing.T) {
	type step struct {
		after   int // hours after noon
		verdict Verdict
		unsure  bool  // the bucket may run dry with the high load
		lost    int64 // runs
		was     Verdict
		changed bool
	}
	noon := clock(t, "2026-11-21 12:00:00")
	for _, steps := range [][]step{
		{
			{0, Lasts, false, 0, "", false},
			{0, Lasts, true, 0, Lasts, false},
			{0, RunsDry, true, 0, Lasts, true},
			{0, Lasts, true, 0, RunsDry, false},
			{0, RunsDry, true, 0, RunsDry, false},
			{0, Lasts, false, 0, RunsDry, true},
			{0, Exhausted, true, 0, Lasts, true},
			{0, Suspended, false, 0, Exhausted, true},
			{0, Suspended, false, 0, Suspended, false},
			{0, Lasts, true, 0, Suspended, true},
		},
		{{0, Exhausted, false, 0, "", true}}, // short at the start
		{
			{0, Lasts, false, 0, "", false},
			{1, Lasts, false, 3, Lasts, true},
			{2, Lasts, false, 0, Lasts, false},
			{3, Lasts, false, 4, Lasts, false},
			{4, Exhausted, false, 4, Lasts, true},
			{5, Lasts, false, 4, Exhausted, false}, // lasts again for a moment
			{6, Exhausted, false, 4, Exhausted, false},
			{20, Lasts, false, 4, Exhausted, true}, // the next day
			{21, Lasts, false, 4, Lasts, false},
			{45, Lasts, false, 0, Lasts, false},
		},
	} {
		var w VerdictWatch
		for i, s := range steps {
			at := noon.Add(time.Duration(s.after) * time.Hour)
			_, reset := window(t, "day").Bounds(at)
			f := Forecast{Bucket: "default", At: at, ResetAt: reset, Verdict: s.verdict,
				Lost: Work{Runs: s.lost}}
			if s.unsure {
				f.Earliest = at.Add(time.Hour)
			}
			if was, changed := w.Changed(f); was != s.was || changed != s.changed {
				t.Errorf("step %d: %q, %v, want %q, %v", i, was, changed, s.was, s.changed)
			}
			short := s.verdict != Lasts || s.lost > 0
			if f.Short() != short {
				t.Errorf("step %d: short %v, want %v", i, f.Short(), short)
			}
		}
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
			"default lasts to the reset (dry 20:50Z at the earliest)"},
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
