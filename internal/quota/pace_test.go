package quota

import (
	"errors"
	"testing"
	"time"
)

func TestPaceLine(t *testing.T) {
	day, err := ParseWindow("day", "America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	morning := make([]int64, 24)
	for h := 6; h < 12; h++ {
		morning[h] = 1
	}
	at := func(d, h, m int) time.Time { return time.Date(2026, time.March, d, h, m, 0, 0, day.Zone) }
	for _, test := range []struct {
		name  string
		pace  Pace
		now   time.Time
		units int64
		want  int64
	}{
		{"even, at the reset", Pace{Slack: 500}, at(5, 0, 0), 9600, 500},
		{"even, at noon", Pace{Slack: 500}, at(5, 12, 0), 9600, 5300},
		{"even, late", Pace{Slack: 500}, at(5, 23, 30), 9600, 9600},
		{"even, no slack, an hour", Pace{}, at(5, 1, 0), 9600, 400},
		{"even, the day of 23 h, noon is 11 h in", Pace{}, at(8, 12, 0), 9200, 4400},
		{"morning, before it", Pace{Curve: morning}, at(5, 5, 0), 600, 0},
		{"morning, half way", Pace{Curve: morning}, at(5, 9, 0), 600, 300},
		{"morning, a quarter past seven", Pace{Curve: morning}, at(5, 7, 15), 600, 125},
		{"morning, after it", Pace{Curve: morning}, at(5, 12, 0), 600, 600},
	} {
		if got := test.pace.Line(test.units, day, test.now); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// At the moment When names, the line is there; a second before, it is not.
func TestPaceWhen(t *testing.T) {
	day, _ := ParseWindow("day", "America/Los_Angeles")
	now := time.Date(2026, time.November, 1, 0, 30, 0, 0, day.Zone) // a day of 25 h
	pace := Pace{Slack: 100}
	for used := int64(200); used <= 9500; used += 100 {
		when := pace.When(9500, used, day, now)
		if pace.Line(9500, day, when) < used {
			t.Errorf("%d at %v: the line is at %d", used, when, pace.Line(9500, day, when))
		}
		if before := when.Add(-time.Second); before.After(now) && pace.Line(9500, day, before) >= used {
			t.Errorf("%d at %v: a second before would do", used, when)
		}
	}
	if got := (Pace{}).When(9500, 1, day, now); !got.Equal(now) {
		t.Errorf("what fits now: %v, want %v", got, now)
	}
}

// TestDeniedByPace: units are left, so it is not called exhausted; who looks for ErrExhausted finds
// it all the same.
func TestDeniedByPace(t *testing.T) {
	at := time.Date(2026, time.June, 1, 12, 0, 0, 1000, time.UTC)
	for limit, want := range map[string]string{
		PaceName:      "held back by the pace, retry at 2026-06-01T12:00:01Z",
		"default 24h": "quota exhausted: default 24h, retry at 2026-06-01T12:00:01Z",
	} {
		err := &DeniedError{Decision{Limit: limit, RetryAt: at}}
		if err.Error() != want || !errors.Is(err, ErrExhausted) {
			t.Errorf("%v", err)
		}
	}
}
