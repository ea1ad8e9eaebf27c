package share

import (
	"testing"

	"pgregory.net/rapid"
)

// sixty is 60 % of what the schedule wants.
const sixty = 8 * halfHours * pages * 60 / 100 // 921 units

var days = []struct {
	name  string
	scene scene
	want  map[string]int64 // by hand
	from  int64            // from this tick on
	gap   int64            // no region waits longer for its next run, in ticks
}{
	{"equal weights", scene{budget: sixty}, each(115, nil), 1, 3},
	{"weights 3:1, four regions each",
		scene{budget: sixty, weights: map[string]int64{"US": 3, "GB": 3, "DE": 3, "FR": 3}},
		each(57, map[string]int64{"US": 173, "GB": 173, "DE": 173, "FR": 173}), 1, 4},
	{"one of weight 3, who wants less than that brings", scene{budget: sixty, weights: map[string]int64{"CA": 3}},
		each(104, map[string]int64{"CA": 192}), 1, 3},
	{"one of weight 0 gets what the others leave", scene{budget: 1436, weights: map[string]int64{"US": 0}},
		each(192, map[string]int64{"US": 92}), 1, 4},
	{"floors", scene{budget: sixty, floors: map[string]int64{"BR": 150, "AU": 20}}, each(110, map[string]int64{"BR": 150}), 1, 3},
	{"floors above the budget", scene{budget: 400, floors: each(60, nil)}, each(50, nil), 1, 5},
	{"a late joiner runs at all its ticks", scene{budget: sixty, joins: map[string]int64{"BR": 25}},
		each(118, map[string]int64{"BR": 96}), 25, 5},
	{"two hours without a daemon for one region", scene{budget: sixty, away: map[string][2]int64{"BR": {20, 23}}}, each(115, nil), 25, 3},
	{"away for all of the afternoon", scene{budget: sixty, away: map[string][2]int64{"US": {25, 46}}},
		each(122, map[string]int64{"US": 68}), 1, 24},
	{"a chart of two pages where four were assumed", scene{budget: sixty, real: map[string]int64{"DE": 2}},
		each(118, map[string]int64{"DE": 96}), 1, 3},
	{"500 units by hand at noon", scene{budget: 1700, manual: map[int64]int64{25: 500}}, each(150, nil), 25, 4}, // 8 if they waited for the line
	{"200 units by hand at noon of a short day", scene{budget: sixty, manual: map[int64]int64{25: 200}}, each(90, nil), 25, 6},
	{"four runs each", scene{budget: 4 * 8 * pages}, each(4*pages, nil), 1, 12},
}

func TestDay(t *testing.T) {
	for _, d := range days {
		t.Run(d.name, func(t *testing.T) {
			p := d.scene.play()
			if err := fair(p, d.want); err != nil {
				t.Errorf("%v\nran %v", err, p.ran)
			}
			for _, r := range eight {
				if gap := p.longestGap(r, d.from); gap > d.gap {
					t.Errorf("%s waits %d ticks: %v", r, gap, p.ran[r])
				}
			}
		})
	}
}

// TestDay_FirstCome plays the same days by who comes first: the same check fails on each of them that is short of units.
func TestDay_FirstCome(t *testing.T) {
	for _, d := range days {
		t.Run(d.name, func(t *testing.T) {
			d.scene.admit = firstCome
			p := d.scene.play()
			err := fair(p, d.want)
			if err == nil {
				t.Errorf("first come, first served passes: %v", p.spent)
			}
			t.Log(err)
		})
	}
}

// TestDay_Joiner: who comes at noon runs at each of its ticks, because the whole day's share is its due.
func TestDay_Joiner(t *testing.T) {
	p := scene{budget: sixty, joins: map[string]int64{"BR": 25}}.play()
	if got := len(p.ran["BR"]); got != 24 {
		t.Errorf("ran %d times of 24: %v", got, p.ran["BR"])
	}
}

// TestDay_Random: whatever the budget, the weights and the floors, each region ends within two runs of what MaxMin says at
// the start and is never further from the even line (beyond one only when the last runs of several compete for the same odd
// units), no run is cut off, and no units are left that a run could have used.
func TestDay_Random(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scene{budget: rapid.Int64Range(0, 1600).Draw(t, "budget"), weights: map[string]int64{}, floors: map[string]int64{}}
		for _, r := range eight {
			s.weights[r] = rapid.Int64Range(0, 4).Draw(t, "weight of "+r)
			if rapid.Bool().Draw(t, "floor") {
				s.floors[r] = rapid.Int64Range(0, 100).Draw(t, "floor of "+r)
			}
		}
		morning := played{spent: map[string]int64{}, over: s.budget}
		day, _ := s.day(&morning, 1, eight[0])
		p := s.play()
		var wanted bool
		for _, share := range day.Shares() {
			ran := p.ran[share.Region]
			wanted = wanted || len(ran) < halfHours
			if d := p.spent[share.Region] - share.Entitled; d <= -2*pages || d >= 2*pages {
				t.Errorf("%s spent %d of %d", share.Region, p.spent[share.Region], share.Entitled)
			}
			for i, tick := range ran {
				half := int64(pages * halfHours / 2)
				if d := int64(i+1)*2*half - share.Entitled*tick; d >= 4*half || d <= -4*half {
					t.Errorf("%s is two runs or more from the line at tick %d: %v", share.Region, tick, ran)
				}
			}
		}
		if p.cut > 0 || wanted && p.over >= pages {
			t.Errorf("%d runs cut off, %d units not used", p.cut, p.over)
		}
	})
}

// TestShares_Fit: lanes of any costs on any moment of a day that may have gone wrong before: the runs they can afford fit in
// what is left and in their ticks, entitlements add up, loans make up the differences, and whoever runs can be paid.
func TestShares_Fit(t *testing.T) {
	lane := rapid.Custom(func(t *rapid.T) Lane {
		return Lane{Weight: rapid.Int64Range(0, 3).Draw(t, "weight"), Floor: rapid.Int64Range(0, 40).Draw(t, "floor"),
			Spent: rapid.Int64Range(0, 60).Draw(t, "spent"), Cost: rapid.Int64Range(0, 6).Draw(t, "cost"),
			Ticks: 24, Remaining: rapid.Int64Range(0, 24).Draw(t, "remaining")}
	})
	rapid.Check(t, func(t *rapid.T) {
		day := Day{Left: rapid.Int64Range(-3, 400).Draw(t, "left"), Lanes: rapid.SliceOfN(lane, 1, 9).Draw(t, "lanes")}
		capacity, wanted := max(day.Left, 0), int64(0)
		for _, l := range day.Lanes {
			capacity += l.Spent
			wanted += l.Demand()
		}
		var entitled, beyond, runs, lent int64
		shares := day.Shares()
		for i, s := range shares {
			entitled += s.Entitled
			beyond += max(s.Entitled-s.Even, 0)
			runs += s.Runs * s.Cost
			if s.Runs < 0 || s.Runs > s.Remaining {
				t.Fatalf("%d runs for %d ticks: %+v", s.Runs, s.Remaining, shares)
			}
			if d := day.Admit(i); d.Run && s.Remaining > 0 && s.Cost > max(day.Left, 0) {
				t.Fatalf("%v: a run costs %d of %d", d, s.Cost, day.Left)
			}
		}
		for _, l := range Loans(shares) {
			lent += l.Units
		}
		if runs > max(day.Left, 0) || entitled != min(capacity, wanted) || lent != beyond {
			t.Fatalf("runs of %d units, %d left; entitled to %d of %d; %d lent for %d: %+v",
				runs, day.Left, entitled, capacity, lent, beyond, shares)
		}
	})
}
