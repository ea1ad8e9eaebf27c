package plan

import (
	"fmt"
	"math"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestNoDayBefore: hours without a day before them do not count as correct predictions by the
// clock.
func TestNoDayBefore(t *testing.T) {
	now := clock(t, "2026-11-21 14:00:00")
	for _, hours := range []time.Duration{30, 36} {
		b := bucketAt(t, "2026-11-21 14:00:00", "12000 day", "",
			flow(now.Add(-hours*time.Hour), now, 10*time.Minute, 20))
		for i := range b.Spent { // every other hour of today doubles
			if ago := now.Sub(b.Spent[i].At); ago < dayHours*time.Hour && int(ago.Hours())%2 == 0 {
				b.Spent[i].Units *= 2
			}
		}
		h := newHabit(b)
		if _, off := off(hourly(h.units), 1, 0); off < 0.15 {
			t.Errorf("%d hours of log: %.2f off by the clock", hours, off)
		}
	}
}

// TestSpreadOfFewSpans: a spread measured from few spans widens on both sides alike.
func TestSpreadOfFewSpans(t *testing.T) {
	for _, test := range []struct{ z, spans, want float64 }{ // Student's, by the tables
		{0, 3, 0}, {1.2816, 3, 1.638}, {-1.2816, 3, -1.638}, {1.2816, 6, 1.440}, {1.2816, 36,
			1.306},
	} {
		if got := student(test.z, test.spans); math.Abs(got-test.want) > 0.1 {
			t.Errorf("%v by %v spans: %.3f, want %.3f", test.z, test.spans, got, test.want)
		}
	}
	if z := normal(0.9); math.Abs(z-1.2816) > 0.0001 {
		t.Errorf("the normal distribution's 90th percentile is at %v", z)
	}
	now := clock(t, "2026-11-21 14:00:00")
	b := bucketAt(t, "2026-11-21 14:00:00", "12000 day", "",
		flow(now.Add(-48*time.Hour), now, 10*time.Minute, 20))
	h := newHabit(b)
	for hours, spans := range map[int]float64{3: 12, 6: 6, 18: 3} {
		if e := h.expect(hours * hour); e.spans != spans {
			t.Errorf("%d hours to come: %v spans, want %v", hours, e.spans, spans)
		}
	}
}

// TestFewLargeCharges: a few large charges do not make the high rate absurd, whenever they were.
func TestFewLargeCharges(t *testing.T) {
	for _, window := range []string{"day", "month", "24h"} {
		for n := range int64(5) {
			for _, ago := range []time.Duration{5 * time.Minute, time.Hour, 5 * time.Hour} {
				b := bucketAt(t, "2026-11-21 20:00:00", "50000000 "+window, "")
				from := b.At.Add(-ago - time.Duration(n+1)*7*time.Minute)
				b.Spent = flow(from, b.At.Add(-ago), 7*time.Minute, 400_000)
				most := 3 * 400_000 * float64(n+1) / quiet.Hours()
				if window == "month" { // which may have an incident, too
					most += budgetOf(b) / empties
				}
				if r := ForecastOf(b).Rate; r.High > most+1 || r.Likely > r.High || r.Likely == 0 {
					t.Errorf("%s, %d charges %v ago: %v, want at most %.0f", window, n+1, ago, r, most)
				}
			}
		}
	}
}

// TestCorrections: what adjust and reconcile add to the log is no habit.
func TestCorrections(t *testing.T) {
	b := bucketAt(t, "2026-11-21 20:00:00", "9500 day", "")
	b.Spent = flow(b.At.Add(-24*time.Hour), b.At, 10*time.Minute, 10)
	want := ForecastOf(b).Rate
	for i, source := range []string{"adjust", "reconcile"} {
		b.Spent = join(b.Spent, []quota.Spent{{At: b.At.Add(-time.Duration(i+1) * time.Hour),
			Units: 1500, Charges: 1, Labels: quota.Labels{quota.LabelSource: source}}})
	}
	if got := ForecastOf(b).Rate; got != want {
		t.Errorf("rate %v with corrections, %v without", got, want)
	}
}

// TestIncidents: the more often jobs ran away, the earlier one is part of the high load; and no
// incident is part of the likely one.
func TestIncidents(t *testing.T) {
	now := clock(t, "2026-11-21 14:00:00")
	steady := flow(now.Add(-60*time.Hour), now, 10*time.Minute, 5)
	ran := flow(now.Add(-28*time.Hour), now.Add(-25*time.Hour), time.Minute, 40)
	again := flow(now.Add(-16*time.Hour), now.Add(-13*time.Hour), time.Minute, 40)
	begins := func(l load) int { // the first bin with more than ten times as much
		for i, units := range l {
			if units > 50 {
				return i
			}
		}
		return len(l)
	}
	bins, before := 18*hour, 18*hour+1
	for incidents, spent := range []Bucket{
		bucketAt(t, "2026-11-21 14:00:00", "12000 day", "", steady),
		bucketAt(t, "2026-11-21 14:00:00", "12000 day", "", steady, ran),
		bucketAt(t, "2026-11-21 14:00:00", "12000 day", "", steady, ran, again),
	} {
		h := newHabit(spent)
		_, likely, high := h.loads(bins, 10000)
		if at := begins(high); h.incidents != incidents || at >= before || begins(likely) < bins {
			t.Errorf("%d incidents: one begins in bin %d, after fewer in bin %d", h.incidents, at,
				before)
		} else {
			before = at
		}
	}
}

// TestEnough: a bucket with enough for all is not playResult. Playing it gives the same result.
func TestEnough(t *testing.T) {
	const at = "2026-11-21 20:00:01"
	enough := 0
	for units := 400; units <= 4000; units += 200 {
		in := bucketAt(t, at, fmt.Sprintf("%d day", units), "*/30 * * * * US BR")
		o := newOutlook(in)
		for _, perBin := range []float64{0, 1, 7, 30} {
			l := make(load, 12*hour)
			for i := range l {
				l[i] = perBin
			}
			if !o.isEnough(l) {
				continue
			}
			enough++
			if p := o.play(l, whenLost); p.dry != never || len(p.runs) > 0 {
				t.Errorf("%d units, %v each 10 minutes: dry at %v", units, perBin, timeOf(p.dry))
			}
		}
	}
	if enough < 20 {
		t.Errorf("%d plays with enough", enough)
	}
	// 23 ticks of two lanes want 184 units; with one less the last run is cut off
	for units, want := range map[int]bool{184: true, 183: false} {
		in := bucketAt(t, at, fmt.Sprint(units, " day"), "*/30 * * * * US BR")
		if got := newOutlook(in).isEnough(nil); got != want {
			t.Errorf("%d units are enough: %v, want %v", units, got, want)
		}
	}
}
