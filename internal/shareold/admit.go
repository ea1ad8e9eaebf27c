package share

import (
	"fmt"
	"math/bits"
)

// Decision says whether a lane runs at this tick, and why in figures. Units are those of the whole day.
type Decision struct {
	Run      bool
	Short    bool // false: there is enough for everyone until the reset, and the shares do not matter
	Slides   bool // see Day
	Region   string
	Weight   int64
	Priority int64
	Entitled int64 // units
	Due      int64 // of those, by this tick when they are spread evenly
	Spent    int64 // units
	Tick     int64 // the present one, counted from 1
	Ticks    int64
	Runs     int64 // whole runs that the lane can still afford until the reset, this one included
}

// Admit decides whether the lane of the given index runs now or leaves this tick out. Nothing is left out while there is
// enough for every tick to come. When short, a lane runs as long as it is behind the even line from nothing at the last
// reset to its share at the next: by tick k of N it has run round(share*k/N) times, so that the last ticks of the day are
// served like the first, and one whose share has grown catches up at once. A lane that is further ahead than rounding
// explains, because its share shrank during the day, does not wait for the line: it spreads the runs it can still afford
// over the ticks to come. So does every lane under a window that slides, which has no line. A run for which there are
// not enough units yet is left out. Admitted runs always fit in what is left.
//
// A tick that was begun before and is only resumed has been decided already: do not ask again. A run outside the schedule
// (catching up at start) is asked for like a tick, counted in Ticks and Remaining.
func (d Day) Admit(lane int) Decision {
	l := d.Lanes[lane]
	ticks := max(l.Ticks, l.Remaining, 1)
	out := Decision{Short: d.Short(), Slides: d.Slides, Region: l.Region, Weight: l.Weight, Priority: l.Priority, Spent: l.Spent, Ticks: ticks,
		Tick: min(ticks-l.Remaining+1, ticks), Entitled: l.Demand(), Runs: l.Remaining, Run: true}
	if out.Short {
		shares, _ := d.entitle()
		s := shares[lane]
		out.Entitled, out.Runs = s.Entitled, s.Runs
		out.Run = l.Cost <= 0 || l.Cost <= d.Left-d.Later && s.runs(out)
	}
	out.Due = portion(out.Entitled, out.Tick, ticks)
	return out
}

// runs is the decision when short. whole is the share in whole runs.
func (s Share) runs(d Decision) bool {
	whole := s.Spent + s.Runs*s.Cost
	switch {
	case s.Runs >= s.Remaining:
		return true
	case d.Slides:
		return spread(s.Number, s.phase, s.Entitled-s.Spent, s.Remaining*s.Cost)
	case 2*s.Spent > s.Cost && !atMost(2*s.Spent-s.Cost, d.Ticks, 2*whole, d.Tick, true):
		return spread(d.Tick, 0, s.Runs, s.Remaining)
	}
	return atMost(2*s.Spent+s.Cost, d.Ticks, 2*whole, d.Tick, true)
}

// portion is units*k/n, for 0 <= k <= n.
func portion(units, k, n int64) int64 {
	hi, lo := bits.Mul64(uint64(units), uint64(k))
	part, _ := bits.Div64(hi, lo, uint64(n))
	return int64(part)
}

// spread says whether tick k is among those that run when runs ticks of the remaining do, without knowing the earlier ones:
// multiples of the golden ratio fall evenly between 0 and 1, and those below runs/remaining run. The phase sets lanes apart, which
// would all run at the same ticks and leave too little for the last of them.
func spread(k int64, phase uint64, runs, remaining int64) bool {
	const golden = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	place, _ := bits.Mul64(uint64(k)*golden+phase, uint64(remaining))
	return place < uint64(runs)
}

// String is the reason in words.
func (d Decision) String() string {
	if !d.Short {
		return fmt.Sprintf("%s runs: enough is left for every tick until the reset", d.Region)
	}
	verb := "runs"
	if !d.Run {
		verb = "is left out"
	}
	due := fmt.Sprintf(" of the day, %d due by tick %d of %d", d.Due, d.Tick, d.Ticks)
	if d.Slides {
		due = fmt.Sprintf(" of the window, %d ticks to come", d.Ticks-d.Tick+1)
	}
	reason := fmt.Sprintf("%s %s: entitled to %d units%s, %d spent, %d more runs, weight %d",
		d.Region, verb, d.Entitled, due, d.Spent, d.Runs, d.Weight)
	if d.Priority != 0 {
		reason += fmt.Sprintf(", priority %d", d.Priority)
	}
	return reason
}
