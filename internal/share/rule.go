// Package share decides which ticks run while units are short.
//
// A tick runs when enough is left for every coming tick. Otherwise each lane runs at an interval.
// Its share of a window depends on its demand, weight, priority and floor (maxMin), and
//
//	interval = window * cost of a run / share
//
// A lane's next run is due one interval after its previous one. A run that comes late, because
// ticks are coarse or no unit was free, does not delay the next ones, so that lanes keep their
// shares over days. When units are scarce, the lane that has been due longest goes first; a lane
// that has never run goes before all others.
//
// Worked example: 100 units a day, eight lanes of equal weight that want 4 units every half hour.
// Each has a share of 12.5 units and runs every 24h * 4 / 12.5 = 7h40m48s. Together they run 25
// times a day, three or four times each.
//
// A decision depends only on the ledger and the configuration, so all daemons agree and a restart
// changes nothing. The package has no clock and does no I/O.
package share

import (
	"fmt"
	"math"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// Lane is a job, or one region of it, with its ticks and its claim when units are short.
type Lane struct {
	schedule.Lane
	Zone  *time.Location // of the schedule
	Pages int64          // pages of a run; 1 if a run is charged as a whole
	Price []quota.Cost   // of a page; nil for the price most lanes pay
	// LearnedCosts is the total that Runs earlier runs used, by bucket. If empty, a run costs its
	// price.
	LearnedCosts []quota.Cost
	Runs         int64
	OwnPaces     *Paces // replaces the credential's paces; nil to use them
	// External means that another program runs the lane without a share. Only its charges are
	// known.
	External bool
	Weight   int64 // proportion among the lanes; see claim
	Priority int64
	Floor    int64 // units a day, or per window if it is shorter
}

// Paces are the pace lines of a lane, or of the credential; none if there is no pace.
type Paces []quota.Limit

// PriceOr returns the price of a page of the lane, or usual if it has none.
func (l *Lane) PriceOr(usual []quota.Cost) []quota.Cost {
	if l.Price != nil {
		return l.Price
	}
	return usual
}

// Takes returns the units of a bucket that the given pages take: by the average of earlier runs,
// or by their price, where usual is the price of most lanes.
func (l *Lane) Takes(bucket string, pages int64, usual []quota.Cost) int64 {
	if l.Runs > 0 {
		return mulDiv(max(pages, 0), quota.UnitsOf(l.LearnedCosts)[bucket], l.Runs)
	}
	return pages * quota.UnitsOf(l.PriceOr(usual))[bucket]
}

// SameTicks reports whether two lanes have their ticks at the same moments.
func (l Lane) SameTicks(other Lane) bool {
	return l.Spec() == other.Spec() && l.Offset == other.Offset
}

// HasRegion reports whether the lane fetches a region's chart. Other lanes run commands.
func (l Lane) HasRegion() bool { return l.Region != "" }

// Spec returns the schedule with its zone.
func (l Lane) Spec() string { return fmt.Sprint(l.Schedule, " ", l.Zone) }

// Rule is how lanes share a bucket. Its fields are not changed after Begin.
type Rule struct {
	Lanes  []Lane
	Price  []quota.Cost  // price of a page of a lane that has no price of its own
	Limits []quota.Limit // limits of that bucket; see Shared for which are shared
	Reset  quota.Window  // the upstream's day
}

// Shortest is the shortest sliding window that is shared. A call denied under a shorter window fits
// again soon.
const Shortest = 6 * time.Hour

// Shared reports whether a limit is shared: a calendar day, week or month, or a sliding window
// that is long enough. A pace already spreads units, and the ticks in an anchored window cannot
// be known beforehand.
func Shared(l quota.Limit) bool {
	switch w := l.Window; {
	case l.Pace != nil:
		return false
	case w.IsCalendar():
		return w.Longest() > 24*time.Hour
	default:
		return w.IsSliding() && w.Length >= Shortest
	}
}

// Cost returns the units of one run of a lane; 0 if it needs no share.
func (r *Rule) Cost(lane int) int64 {
	l := &r.Lanes[lane]
	if l.External {
		return 0
	}
	return max(l.Pages, 0) * max(quota.UnitsOf(l.PriceOr(r.Price))[quota.DefaultBucket], 0)
}

// LaneOf returns the lane that an entry with these labels belongs to: the lane of its job and
// region, of a job without regions, or the first lane of the region for another job. It returns
// Others if there is none.
func (r *Rule) LaneOf(labels quota.Labels) int {
	job, region := labels[quota.LabelJob], labels[quota.LabelRegion]
	ours, first := false, Others
	for i := range r.Lanes {
		l := &r.Lanes[i]
		if l.Job == job && (l.Region == region || l.Region == "") {
			return i
		}
		if l.Region == region && region != "" && first == Others {
			first = i
		}
		ours = ours || l.Job == job
	}
	if !ours {
		return Others
	}
	return first
}

// Begin returns the book of an empty ledger.
func (r Rule) Begin() *Book {
	b := &Book{rule: &r, lanes: make([]laneBook, len(r.Lanes)), now: math.MinInt64}
	for i := range r.Lanes {
		cost := r.Cost(i)
		b.lanes[i].cost = cost
		b.lanes[i].every = r.Lanes[i].Schedule.Interval().Microseconds()
		b.costs += cost
		b.unit = gcd(b.unit, cost)
	}
	b.unit = max(b.unit, 1)
	for i, l := range r.Limits {
		if Shared(l) {
			b.limits = append(b.limits, division{index: i, limit: l})
		}
	}
	return b
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
