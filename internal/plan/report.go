package plan

import (
	"math"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// Report is the result of a plan.
type Report struct {
	From, To   time.Time
	Counts                 // of all lanes
	Days       []Day       // in order of time, and within a day of the prices
	Windows    []Use       // peak of each limit over the whole plan
	Lanes      []LaneUse   // in the order of the lanes
	First      *Run        // first run that gets less than it wants; nil if all fit
	Collisions []Collision // most frequent first
	Series     []Series    // one for each limit; only with a Step
}

// Counts is the number of runs by outcome.
type Counts struct {
	Runs     int64 `json:"runs"`
	Complete int64 `json:"complete"`
	Partial  int64 `json:"partial"`
	Denied   int64 `json:"denied"`
	LeftOut  int64 `json:"left_out"`
	Wanted   int64 `json:"pages_wanted"`
	Pages    int64 `json:"pages"`
}

// Lost returns the number of runs that get less than they want.
func (c Counts) Lost() int64 { return c.Runs - c.Complete }

func (c *Counts) count(r Run) {
	c.add(Counts{Runs: 1, Wanted: r.Wanted, Pages: r.Pages})
	*[...]*int64{&c.Complete, &c.Partial, &c.Denied, &c.LeftOut}[r.Outcome]++
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
	schedule.LaneID
	Counts
}

// Day is one upstream day of one bucket.
type Day struct {
	Bucket     string
	Start, End time.Time // of the whole day, even if the plan begins or ends within it
	Planned    int64     // units its runs want
	Spent      int64     // units they get
	Counts               // of all lanes
	Windows    []Use     // for the planned part of the day
	First      *Run      // as in Report
	Losing     []LaneUse // lanes that get less than they want
	Crowded    int       // minutes in which several lanes tick
	Busiest    time.Time // a minute with the most ticks; zero if Crowded is 0
	Ticks      int       // in that minute
}

// Use is the peak use of one limit. Units held by reservations count as used.
type Use struct {
	Limit  quota.Limit
	Peak   int64     // units
	At     time.Time // when it was first reached
	Cap    int64     // units for scheduled charges: the limit less its headroom
	Margin int64     // least units left below Cap, or below a pace's line
}

// Share returns the peak as a fraction of Cap.
func (u Use) Share() float64 {
	switch {
	case u.Cap > 0:
		return float64(u.Peak) / float64(u.Cap)
	case u.Peak > 0:
		return math.Inf(1)
	}
	return 0
}

// Series is the use of one limit over time.
type Series struct {
	Limit quota.Limit
	Cap   int64
	Start time.Time // of the first step
	Step  time.Duration
	Use   []int64 // peak of each step: units used and held
}

// Collision is a set of lanes that tick in the same minute.
type Collision struct {
	Lanes []string  // "trending/US"
	Ticks int       // in the minute; more than lanes if one ticks several times
	First time.Time // first such minute
	Times int       // number of such minutes
}

// Fits reports whether every run gets all it wants.
func (r *Report) Fits() bool { return r.Lost() == 0 }

// Over lists the limits, without paces, whose peak exceeds a fraction of their Cap.
func (r *Report) Over(share float64) (over []Use) {
	for _, u := range r.Windows {
		if u.Limit.Pace == nil && u.Share() > share {
			over = append(over, u)
		}
	}
	return over
}

// raisePeak raises the peak to the use at a moment, and lowers the margin to the capacity that this
// use leaves.
func (u *Use) raisePeak(use, at, capacity int64) {
	if use > u.Peak || u.At.IsZero() {
		u.Peak, u.At = use, moment(at)
	}
	u.Margin = min(u.Margin, capacity-use)
}
