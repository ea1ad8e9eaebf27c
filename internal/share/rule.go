// Package share decides which ticks run while units are short.
//
// A tick runs when enough is left for every tick to come. Otherwise each lane runs at an interval
// of its own. Its share of a window follows from demand, weight, priority and floor (MaxMin), and
//
//	interval = window * cost of a run / share
//
// Its next run is due one interval after the ones before it. A run that comes late, because ticks
// are coarse or no unit was free, makes the next ones due no later, so that lanes keep their shares
// over days. Among lanes whose run is due, the one that has been due longest goes first when units
// are scarce; a lane that has never run goes before all others.
//
// Worked example: 100 units a day, eight lanes of equal weight that want 4 units every half hour.
// Each has a share of 12.5 units, and runs every 24h * 4 / 12.5 = 7h40m48s: 25 runs a day of all
// lanes together, three or four of each.
//
// A decision is a function of what the ledger holds and the configuration, and of nothing else: all
// daemons agree, and a restart changes nothing. There is no clock here and no I/O.
package share

import (
	"fmt"
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// Lane is the ticks of a job, or of one region of it, and what it may take when units are short.
type Lane struct {
	schedule.Lane
	Zone  *time.Location // of the schedule
	Pages int64          // that a run wants; 1 where a run is charged as a whole
	Price []quota.Cost   // of a page; nil for that of all lanes without one
	// Took is what Runs earlier runs took together, of each bucket. Without, a run takes its price.
	Took []quota.Cost
	Runs int64
	Own  *Paces // in place of those of the credential; nil for these
	// Elsewhere is whether somebody else runs it, without asking for a share: only what it takes is
	// known.
	Elsewhere bool
	Weight    int64 // see Claimant, for these three
	Priority  int64
	Floor     int64 // units a day, or of a shorter window
}

// floorOf is the units of a window that the lane's floor comes to.
func (l *Lane) floorOf(w *window) int64 {
	const day = 24 * int64(time.Hour/time.Microsecond)
	return mulDiv(max(l.Floor, 0), max(1, (w.length+day/2)/day), 1)
}

// Paces are the lines that hold a lane back; none where it has no pace.
type Paces []quota.Limit

// Name is the lane's in messages and claims: "trending/BR", or "backfill".
func (l Lane) Name() string { return schedule.Name(l.Job, l.Region) }

// Title is its short name, where the job need not be told: "BR", or "backfill".
func (l Lane) Title() string { return schedule.Title(l.Job, l.Region) }

// PriceOr is what a page of the lane costs, where one of most lanes costs usual.
func (l *Lane) PriceOr(usual []quota.Cost) []quota.Cost {
	if l.Price != nil {
		return l.Price
	}
	return usual
}

// Takes is the units of a bucket that so many pages take: by what earlier runs took, or by their
// price, where a page of most lanes costs usual.
func (l *Lane) Takes(bucket string, pages int64, usual []quota.Cost) int64 {
	if l.Runs > 0 {
		return mulDiv(max(pages, 0), quota.UnitsOf(l.Took)[bucket], l.Runs)
	}
	return pages * quota.UnitsOf(l.PriceOr(usual))[bucket]
}

// SameTicks reports whether two lanes tick at the same moments.
func (l Lane) SameTicks(other Lane) bool {
	return l.Spec() == other.Spec() && l.Offset == other.Offset
}

// Spec is the schedule, with its zone.
func (l Lane) Spec() string { return fmt.Sprint(l.Schedule, " ", l.Zone) }

// Rule is who shares what. Its fields are set once.
type Rule struct {
	Lanes  []Lane
	Price  int64         // units of the shared bucket that a page costs, unless a lane has its own
	Limits []quota.Limit // of that bucket; only some are shared: see Shared
	Reset  quota.Window  // the upstream's day
}

// Shortest is the shortest sliding window that is shared. What a shorter one denies fits again
// soon.
const Shortest = 6 * time.Hour

// Shared reports whether a limit is shared: one of a calendar day, week or month, or of a window
// that slides and is long enough. A pace spreads units by itself, and of an anchored window nobody
// knows beforehand which ticks are in it.
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

// Cost is the units of a run of a lane; 0 where it needs no share.
func (r *Rule) Cost(lane int) int64 {
	l, price := &r.Lanes[lane], r.Price
	if l.Elsewhere {
		return 0
	}
	if l.Price != nil {
		price = sharedUnits(l.Price)
	}
	return max(l.Pages, 0) * max(price, 0)
}

func sharedUnits(price []quota.Cost) int64 {
	for _, cost := range price {
		if cost.Bucket == quota.DefaultBucket {
			return cost.Units
		}
	}
	return 0
}

// Begin returns the book of an empty ledger.
func (r Rule) Begin() *Book {
	b := &Book{rule: &r, lanes: make([]laneBook, len(r.Lanes)), now: math.MinInt64}
	for i := range r.Lanes {
		every, cost := r.Lanes[i].Schedule.Interval().Microseconds(), r.Cost(i)
		b.lanes[i].every = every
		b.costs += cost
		b.unit = gcd(b.unit, cost)
		same := slices.IndexFunc(b.rates, func(d demand) bool { return d.every == every })
		if same < 0 {
			same, b.rates = len(b.rates), append(b.rates, demand{every: every})
		}
		b.rates[same].units += cost
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
