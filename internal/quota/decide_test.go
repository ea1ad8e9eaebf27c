package quota

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// line is an entry of the log below.
type line struct{ at, units int64 }

// lines is a Log in a slice, oldest first.
type lines []line

func (l lines) UsedAfter(t int64) (sum int64) {
	for _, e := range l {
		if e.at > t {
			sum += e.units
		}
	}
	return sum
}

func (l lines) StampAt(t, n int64) int64 {
	for _, e := range l {
		if e.at > t {
			if n -= e.units; n <= 0 {
				return e.at
			}
		}
	}
	panic("more units asked for than used")
}

// TestFits works on a window of 100 µs at 1000: the entry at 900 has just left.
func TestFits(t *testing.T) {
	s := Standing{Limit: Limit{Window: Sliding(100 * time.Microsecond)}, Now: 1000,
		Log: lines{{900, 50}, {901, 10}, {950, 20}, {1000, 30}}}
	held := s
	held.Holds = []Hold{{15, 1300}, {5, 1001}, {10, 1040}}
	day := s
	day.Limit.Window, day.Start, day.End = Window{Calendar: "day", Zone: time.UTC}, 901, 2000
	for _, c := range []struct {
		name        string
		s           Standing
		cost, limit int64
		want        int64
	}{
		{"fits", s, 40, 100, 1000},
		{"one too many", s, 41, 100, 1001},
		{"as many as the oldest frees", s, 50, 100, 1001},
		{"one more", s, 51, 100, 1050},
		{"all but the newest", s, 70, 100, 1050},
		{"everything", s, 100, 100, 1100},
		{"more than the limit", s, 101, 100, Never},
		{"fits beside holds", held, 10, 100, 1000},
		{"the first hold to lapse", held, 15, 100, 1001},
		{"an entry and a hold at once", held, 25, 100, 1001},
		{"the second hold", held, 35, 100, 1040},
		{"holds and entries in turn", held, 36, 100, 1050},
		{"behind the last hold", held, 86, 100, 1300},
		{"calendar: fits", day, 40, 100, 1000},
		{"calendar: at its end", day, 41, 100, 2000},
		{"calendar: never", day, 101, 100, Never},
	} {
		if got := c.s.Fits(c.cost, c.limit); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if s.Remaining(100) != 40 || held.Remaining(100) != 10 || held.Remaining(50) != 0 || held.Held() != 30 || day.Used() != 60 {
		t.Errorf("remaining %d, %d, %d, held %d, used %d", s.Remaining(100), held.Remaining(100), held.Remaining(50), held.Held(), day.Used())
	}
}

func TestNextFree(t *testing.T) {
	none := Standing{Limit: Limit{Window: Sliding(100 * time.Microsecond)}, Now: 1000, Log: lines{{900, 5}}}
	used, held, drawn := none, none, none
	used.Log = lines{{900, 5}, {930, 5}}
	held.Holds = []Hold{{5, 1500}, {5, 1400}}
	drawn.Holds = []Hold{{0, 1500}}
	both := held
	both.Log = used.Log
	for name, c := range map[string]struct {
		s    Standing
		want int64
	}{"nothing": {none, 0}, "an entry": {used, 1030}, "a hold": {held, 1400}, "a hold drawn empty": {drawn, 0}, "both": {both, 1030}} {
		if got := c.s.NextFree(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestFitsExactly: at Fits the cost fits, one microsecond earlier it does not.
func TestFitsExactly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const now, length = 1000, 100
		var log lines
		for at := int64(850); at < now; at += rapid.Int64Range(1, 60).Draw(rt, "gap") {
			log = append(log, line{at, rapid.Int64Range(1, 9).Draw(rt, "units")})
		}
		s := Standing{Limit: Limit{Window: Sliding(length * time.Microsecond)}, Log: log, Now: now}
		for range rapid.IntRange(0, 3).Draw(rt, "holds") {
			s.Holds = append(s.Holds, Hold{rapid.Int64Range(0, 9).Draw(rt, "held"), now + rapid.Int64Range(1, 200).Draw(rt, "ttl")})
		}
		cost, limit := rapid.Int64Range(1, 30).Draw(rt, "cost"), rapid.Int64Range(1, 40).Draw(rt, "limit")
		taken := func(at int64) int64 {
			sum := log.UsedAfter(at - length)
			for _, h := range s.Holds {
				if at < h.ExpiresAt {
					sum += h.Units
				}
			}
			return sum
		}
		got := s.Fits(cost, limit)
		switch {
		case (got == Never) != (cost > limit):
			rt.Fatalf("%d units of %d fit at %d", cost, limit, got)
		case got == Never:
		case taken(got)+cost > limit:
			rt.Fatalf("at %d there are %d units, and %d more do not fit %d", got, taken(got), cost, limit)
		case got > now && taken(got-1)+cost <= limit:
			rt.Fatalf("%d units fit %d before %d already", cost, limit, got)
		}
	})
}
