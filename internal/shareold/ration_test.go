package share

import (
	"testing"

	"pgregory.net/rapid"
)

// Rations answer as Day.Admit does when they have just been dealt.
func TestRations(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := Day{Left: rapid.Int64Range(0, 300).Draw(r, "left"), Slides: rapid.Bool().Draw(r, "slides")}
		for range rapid.IntRange(1, 5).Draw(r, "lanes") {
			ticks := rapid.Int64Range(1, 60).Draw(r, "ticks")
			d.Lanes = append(d.Lanes, Lane{Weight: rapid.Int64Range(0, 3).Draw(r, "weight"), Priority: rapid.Int64Range(0, 1).Draw(r, "priority"),
				Floor: rapid.Int64Range(0, 40).Draw(r, "floor"), Spent: rapid.Int64Range(0, 60).Draw(r, "spent"),
				Cost: rapid.Int64Range(0, 5).Draw(r, "cost"), Ticks: ticks, Remaining: rapid.Int64Range(1, ticks).Draw(r, "remaining")})
		}
		d.Later = rapid.Int64Range(0, d.Left).Draw(r, "later")
		rations := d.Ration()
		if rations == nil {
			if d.Short() {
				r.Fatal("no rations on a short day")
			}
			return
		}
		for i := range d.Lanes {
			if got, want := rations.Admit(i, d.Left-d.Later), d.Admit(i).Run; got != want {
				r.Fatalf("lane %d: %v, Day.Admit says %v", i, got, want)
			}
		}
	})
}

// Two lanes of 10 ticks share 10 runs of 4 units: whoever runs keeps to the rations that were dealt at the beginning, and so does
// a day that is shared anew for each run.
func TestRationsStand(t *testing.T) {
	d := Day{Left: 40, Lanes: []Lane{{Region: "US", Weight: 3, Cost: 4, Ticks: 10, Remaining: 10}, {Region: "GB", Weight: 2, Cost: 4, Ticks: 10, Remaining: 10}}}
	rations := d.Ration()
	var runs [2]int
	for range 10 {
		for i := range d.Lanes {
			l := &d.Lanes[i]
			got, want := rations.Admit(i, d.Left), d.Admit(i).Run
			if got != want {
				t.Errorf("%s, %d to come: %v, Day.Admit says %v", l.Region, l.Remaining, got, want)
			}
			units := int64(0)
			if want {
				units = l.Cost
				runs[i]++
			}
			rations.Done(i, units)
			l.Remaining, l.Spent, d.Left = l.Remaining-1, l.Spent+units, d.Left-units
		}
	}
	if runs != [2]int{6, 4} {
		t.Errorf("runs: %v", runs)
	}
}
