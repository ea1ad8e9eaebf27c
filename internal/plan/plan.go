// Package plan says what a schedule will spend: it plays the lanes against limits, without a ledger and without waiting.
//
// Worked example: two lanes of 4 pages every hour, 30 units in any 4 h, from midnight.
//
//	00:00 US 4  BR 8     01:00 US 12  BR 16     02:00 US 20  BR 24     03:00 US 28  BR: 2 pages, then denied
//	04:00 the 4 + 4 of midnight leave at this very moment, US 26, BR 30
//
// A run that is denied leaves its chart to the next one of the lane, which wants the missing pages only, if it comes within a
// quarter of an hour of the first page; otherwise the chart is begun again. If BR above had ticks every 10 minutes:
//
//	18:00 BR: 2 pages, then denied     18:10 wants the other 2, and is denied     18:20 begins again, and wants 4
//
// It decides as the ledgers do, with the same windows to the microsecond, and as a daemon does while units are short.
// What it cannot know are answers that are slow, charges of others, charts that were cut off before it begins, and which of
// several lanes that tick in one moment comes first: it takes the one whose last complete chart is oldest.
package plan

import (
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// Plan is a schedule, the budget that it is to keep to, and where to begin. Its fields are set once before Execute.
type Plan struct {
	Lanes  []Lane
	Price  []quota.Cost   // of a page
	Limits []quota.Limit  // those of other buckets are not looked at
	Paces  []quota.Limit  // each with a Pace
	Reset  quota.Window   // the upstream's day
	From   time.Time      // ticks at From or later
	To     time.Time      // and before To
	Before []Standing     // what the ledger holds; none for an empty one
	Step   time.Duration  // between the points of the series; 0 for no series
	Watch  func(Run) bool // told of each run in its order; false ends the plan there. nil for nobody
}

// Lane is the ticks of one region of one job, and what it may take when units are short.
type Lane struct {
	schedule.Lane
	Pages  int64 // that its chart has
	Weight int64
	// Priority says who gets all it wants first when units are short.
	Priority int64
	Floor    int64 // units a day, which a pace does not hold back either
}

// Standing is what the ledger holds of one bucket at the beginning.
type Standing struct {
	Bucket         string
	Entries        []quota.Entry // oldest first; as far back as the longest window
	Reservations   []quota.Reservation
	SuspendedUntil time.Time // zero when the bucket is open
}

// fresh is how old a chart that was cut off may be to be resumed: that of package ingest.
const fresh = 15 * time.Minute

// Outcome is what a run comes to.
type Outcome int

// The outcomes.
const (
	Complete Outcome = iota // all pages that it wants
	Partial                 // some pages, then denied
	Denied                  // no page
	LeftOut                 // its share of the day said no
)

// String is the word for it.
func (o Outcome) String() string {
	return [...]string{"complete", "partial", "denied", "left_out"}[o]
}

// ShareName, as Run.Limit, says that a run is left out for its share of the day.
const ShareName = "share"

// Run is one tick as the plan sees it.
type Run struct {
	schedule.Tick
	Outcome Outcome
	Pages   int64     // that it gets
	Wanted  int64     // pages: those of the chart, less those that an earlier run has got of it
	Limit   string    // why it gets no more: the name of a limit, quota.PaceName, quota.Suspended or ShareName
	RetryAt time.Time // when the next page would fit; zero when it is not known
}

// Lost reports whether the run gets less than it wants.
func (r Run) Lost() bool { return r.Outcome != Complete }
