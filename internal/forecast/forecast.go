// Package forecast foretells when each bucket will run dry.
//
// It is no straight line: the schedule is known, tick by tick; entries leave sliding windows again; units set aside count until
// their reservation expires; and only what is left over, the spending that no schedule announced, is carried on from the last two
// days of the log. Nobody knows how that spending will go, so two hundred possible days are played from it, always the same two
// hundred: their median is the verdict, and eight tenths of them the interval. They differ in what the log leaves open: for how
// long the present habit has lasted, what its rate truly is, how often bursts come and how large, whether a burst is one or a job
// that has run away, whether spending follows the hours of the day, and whether something happens that has not begun.
//
// Worked example, a day's limit of 9,500 units for scheduled charges, at 12:00, 12 h before the reset, 8,300 spent:
//
//	32 units every 3 h, and nothing else       lasts
//	of late 120 an hour besides                runs dry about 21:10, 2 h 50 m before the reset
//	1,200 units set aside until 14:00          exhausted until 14:00
package forecast

import (
	"cmp"
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
)

// Lane is a lane and what each of its runs takes.
type Lane struct {
	schedule.Lane
	Pages int          // of a run
	Price []quota.Cost // of a page
}

// units is what a page takes from the bucket.
func (l Lane) units(bucket string) int64 {
	for _, c := range l.Price {
		if c.Bucket == bucket {
			return c.Units
		}
	}
	return 0
}

// Bucket is what is known of one bucket at one moment.
type Bucket struct {
	Name           string
	At             time.Time // by the ledger's clock
	Limits         []quota.Limit
	Paces          []quota.Limit // that hold scheduled runs back
	Reset          quota.Window  // the upstream's day, to the end of which is foretold; zero for none
	SuspendedUntil time.Time     // zero when the bucket is open
	Reservations   []quota.Reservation
	Entries        []quota.Entry // after At - Memory(Limits), oldest first
	Lanes          []Lane        // all that spend from the credential; those of other buckets are left out
}

// Verdict is the answer in a word. It compares, so that a change of it can be told.
type Verdict string

// The verdicts.
const (
	Lasts     Verdict = "lasts"     // to the reset
	RunsDry   Verdict = "runs_dry"  // before the reset
	Exhausted Verdict = "exhausted" // now
	Suspended Verdict = "suspended" // the upstream, or a person, has closed the bucket
	Closed    Verdict = "closed"    // a limit allows nothing, ever
)

// Short reports whether something that is wanted before the reset will be denied.
func (v Verdict) Short() bool { return v == RunsDry || v == Exhausted || v == Suspended }

// Forecast is when a bucket runs dry, and what is lost by it. Moments that do not come before ResetAt are zero.
type Forecast struct {
	Bucket         string
	At             time.Time
	ResetAt        time.Time // to which is foretold: the next reset, or where all windows slide, one of them from now
	Verdict        Verdict
	DryAt          time.Time // when the units are gone and something more is wanted; as likely before as after
	Earliest       time.Time // one in ten of the days foretold runs dry before
	Latest         time.Time // nine in ten run dry before
	OpensAt        time.Time // when units come free after DryAt, at ResetAt the latest
	Chance         float64   // of running dry before ResetAt, 0 to 1
	SuspendedUntil time.Time
	Limit          string    // that is short; "" when none is
	Remaining      int64     // units for scheduled charges now
	Rate           Rate      // of unscheduled spending
	Scheduled      Work      // of the runs until ResetAt
	Lost           Work      // of those, in the likely day
	LostRuns       []LostRun // in the order of their times

	slides bool // ResetAt is no reset: all windows slide
}

// Rate is units an hour until the reset: in one of ten of the days foretold it is less than Low, in as many more than High.
type Rate struct{ Low, Likely, High float64 }

// Work is what runs take.
type Work struct{ Runs, Pages, Units int64 }

// LostRun is a run that loses pages for want of units.
type LostRun struct {
	schedule.Tick
	Pages int // that it wants
	Lost  int
}

// days is how many days are played.
const days = 200

// Of foretells.
func Of(b Bucket) Forecast {
	g := newGrid(b)
	f := Forecast{
		Bucket: b.Name, At: b.At, ResetAt: g.end, SuspendedUntil: b.SuspendedUntil, Scheduled: g.scheduled(),
		Verdict: Lasts, Remaining: max(0, g.now()), slides: g.slides,
	}
	if !b.SuspendedUntil.After(b.At) {
		f.SuspendedUntil = time.Time{}
	}
	played := play(g, newHabit(b))
	f.Rate = rates(played)
	slices.SortStableFunc(played, func(a, b outcome) int { return cmp.Compare(a.dry, b.dry) })
	f.Earliest, f.Latest = moment(quantile(played, 0.1).dry), moment(quantile(played, 0.9).dry)
	for _, o := range played {
		if o.dry != never {
			f.Chance += 1 / float64(len(played))
		}
	}
	f.Chance = math.Round(f.Chance*1000) / 1000
	g.tell(&f, quantile(played, 0.5))
	return f
}

// tell fills in what the likely day brings, and the verdict.
func (g *grid) tell(f *Forecast, likely outcome) {
	d := diary{}
	g.walk(likely, &d)
	f.DryAt, f.OpensAt, f.Limit, f.Lost, f.LostRuns = moment(likely.dry), moment(d.opens), d.limit, d.lost, d.runs
	switch {
	case g.closed():
		f.Verdict, f.DryAt, f.Earliest, f.Latest, f.OpensAt, f.Chance = Closed, time.Time{}, time.Time{}, time.Time{}, time.Time{}, 0
	case !f.SuspendedUntil.IsZero():
		f.Verdict, f.Limit = Suspended, quota.Suspended
	case g.now() <= 0:
		f.Verdict, f.DryAt, f.Earliest, f.Latest, f.Chance = Exhausted, f.At, f.At, f.At, 1
		f.OpensAt, f.Limit = moment(d.opensFirst), g.tightest(0, nil)
	case likely.dry != never:
		f.Verdict = RunsDry
	}
}

func moment(micros int64) time.Time {
	if micros == never || micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// quantile is the value below which q of the sorted outcomes lie.
func quantile(sorted []outcome, q float64) outcome { return sorted[int(q*float64(len(sorted)))] }

func rates(played []outcome) Rate {
	perHour := make([]float64, len(played))
	for i, o := range played {
		perHour[i] = o.rate
	}
	slices.Sort(perHour)
	at := func(q float64) float64 { return math.Round(perHour[int(q*float64(len(perHour)))]*10) / 10 }
	return Rate{at(0.1), at(0.5), at(0.9)}
}
