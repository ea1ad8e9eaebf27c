package forecast

import (
	"math"
	"testing"
	"time"
)

// TestDaysAreAsTheLogWas: incidents recur as often as in the log, and predictions of ordinary
// spending have the same error as before, to which incidents do not contribute.
func TestDaysAreAsTheLogWas(t *testing.T) {
	now := clock(t, "2026-11-21 14:00:00")
	steady := flow(now.Add(-60*time.Hour), now, 10*time.Minute, 5)
	uneven := flow(now.Add(-48*time.Hour), now, 10*time.Minute, 20)
	for i := range uneven {
		uneven[i].Units += int64(18 * math.Sin(float64(i)/70))
	}
	ran := flow(now.Add(-28*time.Hour), now.Add(-25*time.Hour), time.Minute, 40)
	for name, test := range map[string]struct {
		b         Bucket
		incidents int
		low, high float64 // error
	}{
		"steady":   {bucket(t, "2026-11-21 14:00:00", "12000 day", "", steady), 0, 0, 0.03},
		"uneven":   {bucket(t, "2026-11-21 14:00:00", "12000 day", "", uneven), 0, 0.3, 1},
		"run away": {bucket(t, "2026-11-21 14:00:00", "12000 day", "", steady, ran), 1, 0, 0.03},
	} {
		d := newHabit(test.b).load(mostDays, 18*hour)
		// One in six days, with 30 more hours of log.
		likely := 1 - math.Pow(1+18.0/(30+48), -0.2-float64(test.incidents))
		if d.flat < test.low || d.flat > test.high || math.Abs(d.incident-likely) > 0.001 {
			t.Errorf("%s: %.2f off, an incident %.3f likely, not %.3f", name, d.flat, d.incident,
				likely)
		}
		struck, squares, n := 0.0, 0.0, 0.0
		for i := range mostDays {
			part := mean(d.day(i, 18*hour)) / mean(d.calm)
			if part > 4 {
				struck += 1.0 / mostDays
			} else if d.deck[dealtHalf][i] > 0.75 { // with the slowest half-life
				squares, n = squares+math.Pow(math.Log(part), 2), n+1
			}
		}
		if name == "steady" && math.Abs(struck-likely) > 0.02 {
			t.Errorf("struck %.3f of the days, want %.3f", struck, likely)
		}
		want := 1.35 * d.flat // Student's deviation, with three spans
		if name == "uneven" && math.Abs(math.Sqrt(squares/n)-want) > 0.1 {
			t.Errorf("days are %.2f off, want %.2f", math.Sqrt(squares/n), want)
		}
	}
}

// TestNoDayBefore: hours without a day before them do not count as correct predictions by the
// clock.
func TestNoDayBefore(t *testing.T) {
	now := clock(t, "2026-11-21 14:00:00")
	for _, hours := range []time.Duration{30, 36} {
		b := bucket(t, "2026-11-21 14:00:00", "12000 day", "",
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
	now := clock(t, "2026-11-21 14:00:00")
	b := bucket(t, "2026-11-21 14:00:00", "12000 day", "",
		flow(now.Add(-48*time.Hour), now, 10*time.Minute, 20))
	for hours, spans := range map[int]float64{3: 12, 6: 6, 18: 3} {
		if d := newHabit(b).load(mostDays, hours*hour); d.spans != spans {
			t.Errorf("%d hours to come: %v spans, want %v", hours, d.spans, spans)
		}
	}
}
