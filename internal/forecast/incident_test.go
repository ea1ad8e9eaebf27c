package forecast

import (
	"math"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// A job that ran away may do so again: after none in two days of log in one of ten days, after one
// in three of ten.
func TestIncidents(t *testing.T) {
	now := clock(t, "2026-11-21 14:00:00") // 18 h before the reset
	steady := flow(now.Add(-60*time.Hour), now, 10*time.Minute, 5)
	ran := flow(now.Add(-28*time.Hour), now.Add(-25*time.Hour), time.Minute, 40) // 7,200 in three hours, and then nothing was left
	for _, test := range []struct {
		name    string
		entries []quota.Spent
		units   int64
		want    []incident
	}{
		{"none", steady, 5000, nil},
		{"one that somebody ended", join(steady, ran), 12000, []incident{{bins: 18, rate: 400}}},
	} {
		b := Bucket{Name: "default", Price: 1, At: now, Limits: []quota.Limit{limit(t, test.units, "day")}, Spent: test.entries}
		h := newHabit(b)
		if len(h.incidents) != len(test.want) {
			t.Fatalf("%s: %+v", test.name, h.incidents)
		}
		for i, want := range test.want {
			if got := h.incidents[i]; got.cut != want.cut || got.bins < want.bins || got.bins > want.bins+1 || math.Abs(got.rate-want.rate) > 40 {
				t.Errorf("%s: %+v, want %+v", test.name, got, want)
			}
		}
		seen := 0.5 + float64(len(test.want))
		likely, d, struck := 1-math.Pow(1+18.0/(72+48), -seen), h.load(mostDays), 0.0
		for i := range mostDays {
			sum := 0.0
			for _, u := range d.day(i, 18*hour) {
				sum += u
			}
			if sum > 2*5*18*float64(hour) {
				struck += 1.0 / mostDays
			}
		}
		if math.Abs(struck-likely) > 0.02 {
			t.Errorf("%s: comes in %.3f of the days, want %.3f", test.name, struck, likely)
		}
	}
}

// An incident that emptied the bucket would have gone on.
func TestIncidentCut(t *testing.T) {
	now := clock(t, "2026-11-21 14:00:00")
	b := Bucket{Name: "default", Price: 1, At: now, Limits: []quota.Limit{limit(t, 5000, "day")},
		Spent: join(flow(now.Add(-60*time.Hour), now, 10*time.Minute, 5), flow(now.Add(-20*time.Hour), now.Add(-18*time.Hour), time.Minute, 40))}
	if h := newHabit(b); len(h.incidents) != 1 || !h.incidents[0].cut {
		t.Errorf("%+v", h.incidents)
	}
	h := habit{units: make([]float64, 20), blind: make([]bool, 20)}
	for i, want := range map[int]bool{4: true, 5: true, 6: false, 3: false} { // the last bin of eight, when 4 was blind
		clear(h.blind)
		h.blind[4] = true
		if in := h.incident(burst{i, 8}); in.cut != want {
			t.Errorf("up to bin %d: %+v", i, in)
		}
	}
}

// A surge goes on through the bins in which nothing was left.
func TestSurgeThroughBlind(t *testing.T) {
	h := habit{budget: 1000, units: make([]float64, 60), blind: make([]bool, 60)}
	for i := range h.units {
		h.units[i] = 5
	}
	for i := 3; i < 9; i++ {
		h.units[i] = 100
	}
	for _, i := range []int{0, 1, 2, 5, 6, 7} {
		h.units[i], h.blind[i] = 5, true
	}
	h.findSurges()
	if h.surge != 9 || len(h.incidents) != 0 {
		t.Errorf("a surge of %d bins, %+v", h.surge, h.incidents)
	}
}
