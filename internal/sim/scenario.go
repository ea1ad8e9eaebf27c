// Package sim simulates lanes under limits, without a ledger, a clock or waiting.
//
// Worked example: two lanes of 4 pages every hour, 30 units in any 4 h, from midnight.
//
//	00:00 US 4  BR 8     01:00 US 12  BR 16     02:00 US 20  BR 24
//	03:00 US 28  BR: 2 pages, then denied
//	04:00 the 4 + 4 of midnight leave at this very moment, US 26, BR 30
//
// A denied run leaves its chart to the lane's next run. That one wants only the missing pages if
// it comes within a quarter of an hour of the first page; otherwise it begins a new chart. If BR
// above had ticks every 10 minutes:
//
//	18:00 BR: 2 pages, then denied
//	18:10 wants the other 2, and is denied
//	18:20 begins again, and wants 4
//
// It decides as the ledgers do, with the same windows to the microsecond. Of an anchored window
// it knows the end last reported by the upstream; after that the window slides. While units are
// short, package share decides which ticks run, as in a daemon. It cannot know about slow
// responses, or charts interrupted before it begins. Runs take no time, so concurrent limits do
// not apply. Of lanes that tick at one moment, the one served longest ago goes first.
package sim

import (
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// Scenario is the input of a simulation. Its fields are set before Prepare.
type Scenario struct {
	Lanes  []share.Lane
	Price  []quota.Cost  // of a page of lanes without a price
	Limits []quota.Limit // those of buckets without a price are ignored
	// Throttles and Paces only hold runs back. A pace does not hold back a run below its lane's
	// floor of the day.
	Throttles []quota.Limit
	Paces     []quota.Limit // each with a Pace
	Reset     quota.Window  // the upstream's day
	From      time.Time     // ticks at From or later
	To        time.Time     // and before To
	Before    []Standing    // the ledger's state; none if it is empty
	Like      *Course       // a course with the same ticks; may be nil
}

// Standing is the ledger's initial state of one bucket.
type Standing struct {
	Bucket         string
	Spent          []quota.Spent // oldest first; as far back as the longest window
	Reservations   []quota.Reservation
	SuspendedUntil time.Time // zero if the bucket is open
	ResetAt        time.Time // the last known end of an anchored window; zero for none
}

// Fresh is the maximum age of an interrupted chart to resume, as in package ingest.
const Fresh = 15 * time.Minute

// Course is a prepared scenario, which can be simulated many times with the same result.
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

// Day is the simulated part of an upstream's day.
type Day struct {
	From, To   time.Time
	Start, End time.Time // of the whole day
}

// Days returns the simulated days.
func (c *Course) Days() []Day { return c.days }

// Prepare reads the ledger's state.
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
	if len(c.Lanes) > 0 { // count the ticks of the windows once for all plays
		c.book.Admit(0, s.From.UnixMicro(), func(int) int64 { return 0 })
	}
	return c
}

// Buckets returns the buckets that the lanes use, in the order of their prices.
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

// sharedLimits returns the limits of the shared bucket, without paces.
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

// recall records the earlier charges by lane.
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

// payer returns the lane as the shares identify it.
func (c *Course) payer(lane int) int {
	if lane != share.Others && c.Lanes[lane].Elsewhere {
		return share.Others
	}
	return lane
}

// Windows returns the limits, throttles and paces, bucket by bucket in the order of the prices.
func (c *Course) Windows() (all []quota.Limit) {
	for i := range c.buckets {
		for _, w := range c.buckets[i].windows {
			all = append(all, w.limit)
		}
	}
	return all
}
