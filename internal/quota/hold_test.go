package quota

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// refuses requires that a sound request passes its check, and that each change makes the check
// fail.
func refuses[R Request](t *testing.T, sound func() R, changes map[string]func(*R)) {
	t.Helper()
	if err := sound().Check(); err != nil {
		t.Error(err)
	}
	for name, change := range changes {
		r := sound()
		change(&r)
		if err := r.Check(); !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrNoBucket) &&
			!errors.Is(err, ErrCostExceedsLimit) {
			t.Errorf("%T with a bad %s: %v", r, name, err)
		}
	}
}

func TestReserveCheck(t *testing.T) {
	good := func() Reserve {
		return Reserve{
			Credential: "key1", ID: "default+search_list.r", TTL: 1e9, Limits: sound().Limits,
			Costs: []Cost{{Bucket: "default", Units: 10, Most: 90}, {Bucket: "search_list", Units: 1}}}
	}
	refuses(t, good, map[string]func(*Reserve){
		"id": func(r *Reserve) { r.ID = "r" }, "units": func(r *Reserve) { r.Costs[1].Units = 0 },
		"ttl":      func(r *Reserve) { r.TTL = time.Microsecond },
		"long ttl": func(r *Reserve) { r.TTL = MaxWindow + 1 },
		"note":     func(r *Reserve) { r.Note = "a\nb" },
		"headroom": func(r *Reserve) { r.Costs[0].Units = 81 },
		"most":     func(r *Reserve) { r.Costs[0].Most = 9 },
		"absurd":   func(r *Reserve) { r.Costs[0].Most = MaxUnits + 1 },
		"order":    func(r *Reserve) { r.ID = "search_list+default.r" },
		"one of":   func(r *Reserve) { r.ID = "default.r" },
		"lapse":    func(r *Reserve) { r.Lapse = "keep" },
		"label":    func(r *Reserve) { r.Labels = Labels{"Job": "x"} },
		"bucket":   func(r *Reserve) { r.Limits = r.Limits[:1] },
	})
	unlimited := good()
	unlimited.Limits, unlimited.Unlimited = unlimited.Limits[:1], true
	refuses(t, func() Reserve { return unlimited }, nil)
}

func TestSettleCheck(t *testing.T) {
	cost := func(bucket string, units int64) []Cost {
		return []Cost{{Bucket: bucket, Units: units}}
	}
	good := Settle{Credential: "key1", Reservation: "default+search_list.r", ID: "a"}
	for _, costs := range [][]Cost{
		nil, cost("default", AllUnits), cost("search_list", 0),
		cost("default", MaxUnits), // more than any limit
	} {
		s := good
		s.Costs = costs
		refuses(t, func() Settle { return s }, nil)
	}
	refuses(t, func() Settle { return good }, map[string]func(*Settle){
		"reservation": func(s *Settle) { s.Reservation = "-" },
		"units":       func(s *Settle) { s.Costs = cost("default", -2) },
		"absurd":      func(s *Settle) { s.Costs = cost("default", MaxUnits+1) },
		"bucket":      func(s *Settle) { s.Costs = cost("videos", 1) },
		"twice":       func(s *Settle) { s.Costs = append(cost("default", 1), cost("default", 1)...) },
		"label":       func(s *Settle) { s.Labels = Labels{"Job": "x"} },
		"id":          func(s *Settle) { s.ID = "" },
		"credential":  func(s *Settle) { s.Credential = "A" },
	})
}

// A bucket that is not named settles all that was left, or nothing if only held units count.
func TestSettledCosts(t *testing.T) {
	s := Settle{Reservation: "default+slots+search+videos.r",
		Costs: []Cost{{Bucket: "search", Units: 4}},
		Limits: []Limit{{Bucket: "slots", Units: 3, Window: Window{Concurrent: true}},
			{Bucket: "default", Units: 9, Window: Sliding(time.Hour)}}}
	want := []Cost{{Bucket: "default", Units: AllUnits}, {Bucket: "slots"},
		{Bucket: "search", Units: 4}, {Bucket: "videos", Units: AllUnits}}
	if got := s.SettledCosts(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestLearnCheck(t *testing.T) {
	good := Learn{Credential: "key1", Limit: sound().Limits[0], Remaining: -1}
	refuses(t, func() Learn { return good }, map[string]func(*Learn){
		"remaining":  func(l *Learn) { l.Remaining = -2 },
		"absurd":     func(l *Learn) { l.Remaining = MaxUnits + 1 },
		"concurrent": func(l *Learn) { l.Limit.Window = Window{Concurrent: true} },
		"pace":       func(l *Learn) { l.Limit.Pace = &Pace{} },
		"credential": func(l *Learn) { l.Credential = "A" },
		"bucket":     func(l *Learn) { l.Limit.Bucket = "A" },
	})
}

// Remaining counts only if it belongs to the current window.
func TestLearnStale(t *testing.T) {
	now := at(t, "2026-06-01T12:00:30Z").UnixMicro()
	when := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		return at(t, "2026-06-01T"+text+"Z")
	}
	for _, c := range []struct {
		window, reset, asked, known string
		want                        bool
	}{
		{"1m", "", "11:59:00", "", false},
		{"1m", "12:00:30", "", "", true}, // the reset is past
		{"1m", "12:00:31", "", "", false},
		{"minute", "", "11:59:59", "", true}, // asked before the minute began
		{"minute", "", "12:00:00", "", false},
		{"minute", "", "", "", false},
		{"anchored 1h", "12:30:00", "", "12:30:00", false},
		{"anchored 1h", "12:29:00", "", "12:30:00", false}, // a sixtieth: two clocks differ
		{"anchored 1h", "12:28:59", "", "12:30:00", true},  // of the window before
		{"anchored 1h", "", "", "12:30:00", false},
	} {
		zone := ""
		l := Learn{Limit: Limit{Window: window(t, c.window, zone)}, Reset: when(c.reset),
			AskedAt: when(c.asked)}
		known := int64(0)
		if c.known != "" {
			known = when(c.known).UnixMicro()
		}
		if got := l.Stale(known, now); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

func TestParseReservation(t *testing.T) {
	for _, want := range [][]string{
		{"search_list"}, {"input/x", "money"}, {"output/claude-sonnet-4.5", "output", "requests"},
	} {
		id, buckets, err := ParseReservation(ReservationID("06fmjq2kx4a9bc", want...))
		if !slices.Equal(buckets, want) || id != "06fmjq2kx4a9bc" || err != nil {
			t.Error(buckets, id, err)
		}
	}
	many := make([]string, MaxBuckets+1)
	for i := range many {
		many[i] = fmt.Sprint("b", i)
	}
	texts := strings.Split(";a;default.;.a;a.a.b;Default.a;a.a:b;-.a;a.a\n;a+.b;+a.b;a+a.b;a/.b;"+
		"/a.b;a/B.c;a/b/c.d;a b.c", ";")
	for _, text := range append(texts, ReservationID("a", many...)) {
		if _, _, err := ParseReservation(text); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v, want malformed", text, err)
		}
	}
}
