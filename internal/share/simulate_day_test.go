package share

import "testing"

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
		each(118, map[string]int64{"BR": 96}), 25, 3},
	{"two hours without a daemon for one region", scene{budget: sixty, away: map[string][2]int64{"BR": {20, 23}}}, each(115, nil), 25, 3},
	{"away for all of the afternoon", scene{budget: sixty, away: map[string][2]int64{"US": {25, 46}}},
		each(122, map[string]int64{"US": 68}), 1, 24},
	{"a chart of two pages where four were assumed", scene{budget: sixty, real: map[string]int64{"DE": 2}},
		each(118, map[string]int64{"DE": 96}), 1, 3},
	{"500 units by hand at noon", scene{budget: 1700, manual: map[int64]int64{25: 500}}, each(150, nil), 25, 3},
	{"200 units by hand at noon of a short day", scene{budget: sixty, manual: map[int64]int64{25: 200}}, each(90, nil), 25, 5},
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
