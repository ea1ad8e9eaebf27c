// Package sim plays lanes against limits, without a ledger, a clock or waiting.
//
// Worked example: two lanes of 4 pages every hour, 30 units in any 4 h, from midnight.
//
//	00:00 US 4  BR 8     01:00 US 12  BR 16     02:00 US 20  BR 24
//	03:00 US 28  BR: 2 pages, then denied
//	04:00 the 4 + 4 of midnight leave at this very moment, US 26, BR 30
//
// A run that is denied leaves its chart to the next run of the lane, which wants the missing pages
// only, if it comes within a quarter of an hour of the first page; otherwise the chart is begun
// again. If BR above had ticks every 10 minutes:
//
//	18:00 BR: 2 pages, then denied
//	18:10 wants the other 2, and is denied
//	18:20 begins again, and wants 4
//
// It decides as the ledgers do, with the same windows to the microsecond. Of an anchored window it
// knows the end that the upstream told last; from then on the window slides, until the upstream
// tells another. Which ticks run while units are short it decides as a daemon does, by package
// share. What it cannot know are slow answers and charts that were cut off before it begins. Runs
// take no time, so limits on what is held at once (concurrent) are left aside. Of lanes that tick
// in one moment, the one that was served longest ago goes first.
package sim

import (
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// Scenario is what is played. Its fields are set once before Prepare.
type Scenario struct {
	Lanes  []share.Lane
	Price  []quota.Cost  // of a page of lanes that have none of their own
	Limits []quota.Limit // those of buckets without a price are left aside
	// Throttles and Paces hold runs back, and nobody else. A run below its lane's floor of the day
	// is not held back by a pace.
	Throttles []quota.Limit
	Paces     []quota.Limit // each with a Pace
	Reset     quota.Window  // the upstream's day
	From      time.Time     // ticks at From or later
	To        time.Time     // and before To
	Before    []Standing    // what the ledger holds; none for an empty one
	Like      *Course       // one with the same ticks; nil for none
}

// Standing is what the ledger holds of one bucket at the beginning.
type Standing struct {
	Bucket         string
	Spent          []quota.Spent // oldest first; as far back as the longest window
	Reservations   []quota.Reservation
	SuspendedUntil time.Time // zero when the bucket is open
	ResetAt        time.Time // the last end of an anchored window that is known; zero for none
}

// Fresh is how old a chart that was cut off may be to be resumed: that of package ingest.
const Fresh = 15 * time.Minute

// Course is a scenario that is ready to be played, many times and each time alike.
type Course struct {
	Scenario
	rule    share.Rule
	book    *share.Book
	buckets []bucket
	lanes   []progress
	days    []Day
	ticks   *ticks
	play    Play
}

// Day is the part of an upstream's day that is played.
type Day struct {
	From, To   time.Time
	Start, End time.Time // of the whole day
}

// Days are those that are played.
func (c *Course) Days() []Day { return c.days }

// Prepare takes up what the ledger holds.
func (s Scenario) Prepare() *Course {
	c := &Course{Scenario: s, lanes: make([]progress, len(s.Lanes))}
	for from := s.From; from.Before(s.To); {
		start, end := s.Reset.Bounds(from)
		day := Day{from, end, start, end}
		if end.After(s.To) {
			day.To = s.To
		}
		c.days = append(c.days, day)
		from = end
	}
	for _, name := range s.Buckets() {
		c.buckets = append(c.buckets, newBucket(&s, name))
	}
	for i := range c.buckets {
		c.buckets[i].move(s.From.UnixMicro())
	}
	c.rule = share.Rule{Lanes: s.Lanes, Limits: c.sharedLimits(), Reset: s.Reset}
	for _, cost := range s.Price {
		if cost.Bucket == quota.DefaultBucket {
			c.rule.Price = cost.Units
		}
	}
	c.book = c.rule.Begin()
	c.recall()
	if c.ticks = (&ticks{course: c}); s.Like != nil {
		c.ticks = s.Like.ticks
	}
	if len(c.Lanes) > 0 { // count the ticks of the windows, once for all plays
		c.book.Admit(0, s.From.UnixMicro(), func(int) int64 { return 0 })
	}
	return c
}

// Buckets are those that the lanes take from, in the order of their prices.
func (s *Scenario) Buckets() (names []string) {
	add := func(price []quota.Cost) {
		for _, cost := range price {
			if !slices.Contains(names, cost.Bucket) {
				names = append(names, cost.Bucket)
			}
		}
	}
	add(s.Price)
	for i := range s.Lanes {
		add(s.Lanes[i].Price)
		add(s.Lanes[i].Took)
	}
	return names
}

// sharedLimits are those of the bucket that is shared, without paces: a run asks for its share of
// these.
func (c *Course) sharedLimits() (limits []quota.Limit) {
	for i := range c.buckets {
		if b := &c.buckets[i]; b.name == quota.DefaultBucket {
			for _, w := range b.windows {
				if w.limit.Pace == nil {
					limits = append(limits, w.limit)
				}
			}
		}
	}
	return limits
}

// recall takes up who spent what before.
func (c *Course) recall() {
	for i := range c.lanes {
		c.lanes[i].served = math.MinInt64
	}
	for _, known := range c.Before {
		if known.Bucket != quota.DefaultBucket {
			continue
		}
		for _, e := range known.Spent {
			at, lane := e.At.UnixMicro(), c.rule.LaneOf(e.Labels)
			c.book.Charge(c.payer(lane), at, e.Units)
			if lane == share.Others {
				continue
			}
			p := &c.lanes[lane]
			p.served = at
			if len(c.days) > 0 && !e.At.Before(c.days[0].Start) {
				p.spent += e.Units
			}
		}
	}
}

// payer is the lane as the shares know it.
func (c *Course) payer(lane int) int {
	if lane != share.Others && c.Lanes[lane].Elsewhere {
		return share.Others
	}
	return lane
}

// Windows are the limits, throttles and paces, bucket by bucket in the order of the prices.
func (c *Course) Windows() (all []quota.Limit) {
	for i := range c.buckets {
		for _, w := range c.buckets[i].windows {
			all = append(all, w.limit)
		}
	}
	return all
}
