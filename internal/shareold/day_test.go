package share

import (
	"slices"
	"testing"
)

func TestShares(t *testing.T) {
	lane := func(region string, weight, floor, spent, remaining int64) Lane {
		return Lane{Region: region, Weight: weight, Floor: floor, Spent: spent, Cost: 4, Ticks: 10, Remaining: remaining}
	}
	type figures struct{ even, entitled, runs int64 }
	for _, c := range []struct {
		name  string
		day   Day
		short bool
		want  []figures
		loans []Loan
	}{
		{"enough for all", Day{Left: 80, Lanes: []Lane{lane("US", 1, 0, 0, 10), lane("BR", 1, 0, 0, 10)}}, false,
			[]figures{{40, 40, 10}, {40, 40, 10}}, nil},
		{"half", Day{Left: 40, Lanes: []Lane{lane("US", 1, 0, 0, 10), lane("BR", 1, 0, 0, 10)}}, true,
			[]figures{{20, 20, 5}, {20, 20, 5}}, nil},
		{"units over make a run for the first", Day{Left: 44, Lanes: []Lane{lane("US", 1, 0, 0, 10), lane("BR", 1, 0, 0, 10)}}, true,
			[]figures{{22, 22, 6}, {22, 22, 5}}, nil},
		{"in the middle of the day the same share", Day{Left: 20, Lanes: []Lane{lane("US", 1, 0, 8, 5), lane("BR", 1, 0, 12, 5)}}, true,
			[]figures{{20, 20, 3}, {20, 20, 2}}, nil},
		{"more spent than the share", Day{Left: 9, Lanes: []Lane{lane("US", 1, 0, 28, 3), lane("BR", 1, 0, 3, 3)}}, true,
			[]figures{{20, 28, 0}, {20, 12, 2}}, []Loan{{"BR", "US", 8}}},
		{"one leaves to two by weight", Day{Left: 60, Lanes: []Lane{lane("US", 2, 0, 0, 2), lane("BR", 2, 0, 0, 10), lane("AU", 1, 0, 0, 10)}}, true,
			[]figures{{24, 8, 2}, {24, 35, 9}, {12, 17, 4}}, []Loan{{"US", "BR", 11}, {"US", "AU", 5}}},
		{"two leave to two", Day{Left: 44, Lanes: []Lane{lane("US", 1, 0, 0, 1), lane("BR", 1, 0, 0, 2), lane("AU", 1, 0, 0, 10), lane("CA", 1, 0, 0, 10)}}, true,
			[]figures{{11, 4, 1}, {11, 8, 2}, {11, 16, 4}, {11, 16, 4}},
			[]Loan{{"US", "AU", 4}, {"BR", "AU", 1}, {"US", "CA", 3}, {"BR", "CA", 2}}},
		{"a floor takes from all", Day{Left: 60, Lanes: []Lane{lane("US", 1, 32, 0, 10), lane("BR", 1, 0, 0, 10), lane("AU", 1, 0, 0, 10)}}, true,
			[]figures{{20, 32, 8}, {20, 14, 4}, {20, 14, 3}}, []Loan{{"BR", "US", 6}, {"AU", "US", 6}}},
		{"nothing left", Day{Left: -7, Lanes: []Lane{lane("US", 1, 0, 8, 5), lane("BR", 1, 0, 4, 5)}}, true,
			[]figures{{6, 6, 0}, {6, 6, 0}}, nil},
	} {
		shares := c.day.Shares()
		got := make([]figures, len(shares))
		for i, s := range shares {
			got[i] = figures{s.Even, s.Entitled, s.Runs}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if loans := Loans(shares); !slices.Equal(loans, c.loans) {
			t.Errorf("%s: loans %v, want %v", c.name, loans, c.loans)
		}
		if c.day.Short() != c.short {
			t.Errorf("%s: short %v, want %v", c.name, !c.short, c.short)
		}
	}
}

// TestAdmit: one lane, ten ticks of 4 units, so that left decides alone. Every line is a fresh question.
func TestAdmit(t *testing.T) {
	for _, c := range []struct {
		name              string
		left, spent, tick int64
		run               bool
		due               int64
	}{
		{"enough", 40, 0, 1, true, 4},
		{"enough, although behind", 8, 0, 9, true, 7},
		{"half: the first of two", 20, 0, 1, true, 2},
		{"half: the second waits", 16, 4, 2, false, 4},
		{"half: the third runs", 16, 4, 3, true, 6},
		{"half: the ninth runs", 4, 16, 9, true, 18},
		{"half: behind, so one after the other", 20, 0, 5, true, 10},
		{"all that is left for the last tick", 4, 16, 10, true, 20},
		{"the last tick without units", 3, 17, 10, false, 20},
		{"one run a day: at noon", 4, 0, 5, true, 2},
		{"one run a day: not before", 4, 0, 4, false, 1},
		{"no whole run left", 3, 0, 5, false, 1},
		{"nothing left", 0, 8, 5, false, 4},
		{"far ahead: spread over what comes", 8, 16, 5, true, 12},
		{"far ahead: not at every tick", 8, 20, 6, false, 16},
	} {
		day := Day{Left: c.left, Lanes: []Lane{{Region: "BR", Weight: 1, Spent: c.spent, Cost: 4, Ticks: 10, Remaining: 11 - c.tick}}}
		got := day.Admit(0)
		if got.Run != c.run || got.Due != c.due || got.Tick != c.tick || got.Ticks != 10 || got.Spent != c.spent {
			t.Errorf("%s: %v (%+v)", c.name, got, got)
		}
	}
}

func TestAdmit_Odd(t *testing.T) {
	for _, c := range []struct {
		name string
		lane Lane
		want Decision
	}{
		{"a run that costs nothing", Lane{Region: "BR", Ticks: 4, Remaining: 2},
			Decision{Run: true, Region: "BR", Tick: 3, Ticks: 4, Runs: 2}},
		{"more ticks to come than the day has", Lane{Region: "BR", Weight: 1, Cost: 9, Ticks: 1, Remaining: 3},
			Decision{Short: true, Region: "BR", Weight: 1, Entitled: 5, Due: 1, Tick: 1, Ticks: 3}},
		{"no ticks at all", Lane{Region: "BR", Weight: 1, Cost: 9}, Decision{Run: true, Region: "BR", Weight: 1, Tick: 1, Ticks: 1}},
	} {
		if got := (Day{Left: 5, Lanes: []Lane{c.lane}}).Admit(0); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestAdmit_Beside: a second lane without weight makes the day short and changes nothing else.
func TestAdmit_Beside(t *testing.T) {
	beside := Lane{Region: "US", Cost: 4, Ticks: 10, Remaining: 2}
	for _, c := range []struct {
		name string
		left int64
		lane Lane
		run  bool
	}{
		{"a run that costs nothing", 4, Lane{Weight: 1, Spent: 8, Ticks: 10, Remaining: 5}, true},
		{"on the line, and all ticks are paid for", 4, Lane{Weight: 1, Spent: 36, Cost: 2, Ticks: 10, Remaining: 2}, true},
		{"on the line, and one of two is paid for", 2, Lane{Weight: 1, Spent: 36, Cost: 2, Ticks: 10, Remaining: 2}, false},
	} {
		if got := (Day{Left: c.left, Lanes: []Lane{c.lane, beside}}).Admit(0); got.Run != c.run || !got.Short {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestAtMost(t *testing.T) {
	const big = 1 << 62
	for _, c := range []struct {
		a, b, c, d     int64
		less, lessOrEq bool
	}{
		{2, 3, 7, 1, true, true}, {2, 3, 1, 6, false, true}, {2, 3, 5, 1, false, false},
		{big, 8, 1, 1, false, false}, {1, 1, big, 8, true, true}, {big, 8, 8, big, false, true}, {big, 8, big, 9, true, true},
	} {
		if less, orEqual := atMost(c.a, c.b, c.c, c.d, false), atMost(c.a, c.b, c.c, c.d, true); less != c.less || orEqual != c.lessOrEq {
			t.Errorf("%d*%d against %d*%d: less %v, or equal %v", c.a, c.b, c.c, c.d, less, orEqual)
		}
	}
}

func TestDecision_String(t *testing.T) {
	lanes := []Lane{{Region: "US", Weight: 3, Spent: 8, Cost: 4, Ticks: 10, Remaining: 7}, {Region: "BR", Weight: 1, Cost: 4, Ticks: 10, Remaining: 7}}
	first := Day{Left: 28, Lanes: []Lane{{Region: "DE", Weight: 1, Priority: 2, Cost: 4, Ticks: 10, Remaining: 7}, {Region: "BR", Weight: 9, Cost: 4, Ticks: 10, Remaining: 7}}}
	if got := first.Admit(0).String() + "; " + first.Admit(1).String(); got != "DE runs: entitled to 28 units of the day, 11 due by tick 4 of 10, "+
		"0 spent, 7 more runs, weight 1, priority 2; BR is left out: entitled to 0 units of the day, 0 due by tick 4 of 10, 0 spent, 0 more runs, weight 9" {
		t.Error(got)
	}
	for want, left := range map[string]int64{
		"US runs: enough is left for every tick until the reset":                                                 56,
		"US runs: entitled to 30 units of the day, 12 due by tick 4 of 10, 8 spent, 6 more runs, weight 3":       32,
		"US is left out: entitled to 15 units of the day, 6 due by tick 4 of 10, 8 spent, 2 more runs, weight 3": 12,
	} {
		if got := (Day{Left: left, Lanes: lanes}).Admit(0).String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	day := Day{Left: 500}
	for i := range int64(8) {
		day.Lanes = append(day.Lanes, Lane{Weight: 1 + i%3, Floor: i, Spent: 4 * i, Cost: 4, Ticks: 144, Remaining: 100})
	}
	for b.Loop() {
		day.Admit(3)
	}
}
