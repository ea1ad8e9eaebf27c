package plan

import (
	"math"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/sim"
)

// Report is what a plan comes to.
type Report struct {
	From, To   time.Time
	Counts                 // of all lanes
	Days       []Day       // in the order of time; of one day, in the order of the prices
	Windows    []Use       // the peak of each limit in all that time
	Lanes      []LaneUse   // in the order of the lanes
	First      *Run        // the first that gets less than it wants; nil when all fit
	Collisions []Collision // the most frequent first
	Series     []Series    // one for each limit, with a Step
}

// Counts is how many runs came to what.
type Counts struct {
	Runs     int64 `json:"runs"`
	Complete int64 `json:"complete"`
	Partial  int64 `json:"partial"`
	Denied   int64 `json:"denied"`
	LeftOut  int64 `json:"left_out"`
	Wanted   int64 `json:"pages_wanted"`
	Pages    int64 `json:"pages"`
}

// Lost is the runs that get less than they want.
func (c Counts) Lost() int64 { return c.Runs - c.Complete }

func (c *Counts) count(r sim.Run) {
	c.Runs++
	c.Pages += r.Pages
	c.Wanted += r.Wanted
	switch r.Outcome {
	case sim.Complete:
		c.Complete++
	case sim.Partial:
		c.Partial++
	case sim.Denied:
		c.Denied++
	case sim.LeftOut:
		c.LeftOut++
	}
}

func (c *Counts) add(d Counts) {
	c.Runs += d.Runs
	c.Complete += d.Complete
	c.Partial += d.Partial
	c.Denied += d.Denied
	c.LeftOut += d.LeftOut
	c.Pages += d.Pages
	c.Wanted += d.Wanted
}

// LaneUse is what one lane gets.
type LaneUse struct {
	Job, Region string
	Counts
}

// Title is the lane's.
func (l LaneUse) Title() string { return schedule.Title(l.Job, l.Region) }

// Day is one upstream day of one bucket.
type Day struct {
	Bucket     string
	Start, End time.Time // of the whole day, although the plan may begin or end within it
	Planned    int64     // units that its runs want
	Spent      int64     // units that it gets
	Counts               // of all lanes
	Windows    []Use     // as far as the plan sees of the day
	First      *Run      // as in Report
	Losing     []LaneUse // the lanes that get less than they want
	Crowded    int       // minutes in which several lanes tick
	Busiest    time.Time // of those, one with the most ticks; zero when there is none
	Ticks      int       // in that minute
}

// Use is the peak use of one limit. What reservations hold counts as used.
type Use struct {
	Limit  quota.Limit
	Peak   int64     // units
	At     time.Time // when it was first reached
	Cap    int64     // units for scheduled charges: those of the limit less its headroom
	Margin int64     // the least units that were left below Cap, or below the line of a pace
}

// Share is the peak in parts of Cap: 1 is all of it.
func (u Use) Share() float64 {
	switch {
	case u.Cap > 0:
		return float64(u.Peak) / float64(u.Cap)
	case u.Peak > 0:
		return math.Inf(1)
	}
	return 0
}

// Collision is lanes that tick in one minute.
type Collision struct {
	Lanes []string  // "trending/US"
	Ticks int       // in the minute; more than lanes when one ticks several times in it
	First time.Time // such minute
	Times int       // minutes
}

// Fits reports whether every run gets all that it wants.
func (r *Report) Fits() bool { return r.Lost() == 0 }

// Over lists the limits, paces left aside, whose peak is more than a share of their Cap.
func (r *Report) Over(share float64) (over []Use) {
	for _, u := range r.Windows {
		if u.Limit.Pace == nil && u.Share() > share {
			over = append(over, u)
		}
	}
	return over
}

func (u Use) of(p sim.Peak) Use {
	u.Peak, u.At, u.Margin = max(p.Use, 0), moment(p.At), p.Margin
	return u
}
