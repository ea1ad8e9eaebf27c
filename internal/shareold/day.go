package share

import (
	"cmp"
	"math"
	"slices"
)

// Lane is how the ticks of one region stand on the day that ends at the next reset of the bucket.
type Lane struct {
	Region    string
	Weight    int64 // see Claimant
	Priority  int64
	Floor     int64 // units of this day
	Spent     int64 // units since the last reset
	Cost      int64 // units that a run takes: its pages times their price
	Ticks     int64 // of the whole day
	Remaining int64 // of those, until the reset: the one now included, those done or left out not
	Number    int64 // of the present tick, counted from day to day: see Number. Of windows that slide only
}

// Demand is the units that the lane would have spent at the reset if every tick to come ran.
func (l Lane) Demand() int64 { return l.Spent + l.wanted() }

func (l Lane) wanted() int64 { return max(l.Remaining, 0) * max(l.Cost, 0) }

// Day is what is left of a bucket until its reset, and who wants it.
//
// Of a window that slides, it is what is left until some moment within the next window, when part of what is spent now will have
// left it: the window that ends then is the day, and what of it is spent already is all that will still be inside.
type Day struct {
	Left   int64 // units that the tightest limit of the bucket leaves until the reset
	Lanes  []Lane
	Slides bool  // there is no reset: Spent and Ticks are without a beginning
	Later  int64 // units of Left that are not free yet, but will be
}

// Share is what one lane may take of the day.
type Share struct {
	Lane
	Even     int64 // units that its weight alone would bring, whatever it and the others want
	Entitled int64 // units of the whole day, what is spent included; at most a run less than that
	Runs     int64 // whole runs that it can still afford of them, at most one more than they pay for

	phase uint64 // by which its runs are apart from those of other lanes, under a window that slides
}

// Short says whether the units left will not serve every tick to come.
func (d Day) Short() bool {
	wanted := make([]int64, len(d.Lanes))
	for i, l := range d.Lanes {
		wanted[i] = l.wanted()
	}
	return total(wanted) > d.Left
}

// Shares says what each lane may take of the whole day, in the order of the lanes. All their runs together fit in what is
// left: units that no share can make a whole run of are put together to such runs, for the largest remainders first.
func (d Day) Shares() []Share {
	shares, capacity := d.entitle()
	claimants := make([]Claimant, len(d.Lanes))
	for i, l := range d.Lanes {
		claimants[i] = Claimant{Demand: capacity, Weight: l.Weight}
	}
	for i, even := range MaxMin(capacity, claimants) {
		shares[i].Even = even
	}
	return shares
}

// entitle is Shares without Even, and the units of the whole day. A lane whose last run took it less than a run over its
// share keeps that share, so that rounding is dealt once a day and not anew after each run. Where that does not add up,
// because shares have changed since, all that is spent is spent.
func (d Day) entitle() (shares []Share, capacity int64) {
	left := max(d.Left, 0)
	capacity = left
	for _, l := range d.Lanes {
		capacity += l.Spent
	}
	shares, over := d.split(capacity, func(l Lane) int64 { return max(l.Spent-max(l.Cost-1, 0), 0) })
	if over < 0 {
		shares, over = d.split(capacity, func(l Lane) int64 { return l.Spent })
	}
	roundUp(over, shares)
	return shares, capacity
}

// split shares capacity into units and whole runs; over is what the runs leave of what is left.
func (d Day) split(capacity int64, taken func(Lane) int64) (shares []Share, over int64) {
	claimants := make([]Claimant, len(d.Lanes))
	for i, l := range d.Lanes {
		claimants[i] = Claimant{Demand: l.Demand(), Weight: l.Weight, Priority: l.Priority, Floor: l.Floor, Taken: taken(l)}
	}
	shares, over = make([]Share, len(d.Lanes)), max(d.Left, 0)
	for i, units := range MaxMin(capacity, claimants) {
		l := d.Lanes[i]
		shares[i] = Share{Lane: l, Entitled: units, phase: math.MaxUint64 / uint64(len(d.Lanes)) * uint64(i)}
		if l.Cost > 0 {
			shares[i].Runs = max(units-l.Spent, 0) / l.Cost
		}
		over -= shares[i].Runs * l.Cost
	}
	return shares, over
}

// roundUp makes one more run of what is over for each lane in turn that has units over, as long as there is enough.
func roundUp(left int64, shares []Share) {
	var over []int
	for i, s := range shares {
		if s.over() > 0 {
			over = append(over, i)
		}
	}
	slices.SortStableFunc(over, func(a, b int) int {
		return cmp.Compare(shares[b].over()*shares[a].Cost, shares[a].over()*shares[b].Cost)
	})
	for _, i := range over {
		if shares[i].Cost <= left {
			shares[i].Runs++
			left -= shares[i].Cost
		}
	}
}

// over is the units of the share that make no whole run.
func (s Share) over() int64 { return s.Entitled - s.Spent - s.Runs*s.Cost }
