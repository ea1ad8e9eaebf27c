// Package forecast foretells when each bucket will run dry.
//
// It is no straight line: the schedule is known, tick by tick; entries leave sliding windows again; units set aside count until
// their reservation expires; and only what is left over, the spending that no schedule announced, is carried on from the last two
// days of the log. Nobody knows how that spending will go, so two hundred possible days are played from it, always the same two
// hundred: their median is the verdict, and eight tenths of them the interval. They differ in what the log leaves open: for how
// long the present habit has lasted, what its rate truly is, how often bursts come and how large, whether a burst is one or a job
// that has run away, whether spending follows the hours of the day, and whether something happens that has not begun.
//
// While units will not serve every tick until the reset, a daemon leaves runs out by their shares, and so do the days that are
// played: where nothing is unscheduled, the same runs as a plan. A run that is left out, or held back by a pace or by a limit on
// less than ten minutes, is lost, and the bucket is not dry by it: it lasts because runs are left out.
//
// Worked example, a day's limit of 9,500 units for scheduled charges, at 12:00, 12 h before the reset, 8,300 spent:
//
//	32 units every 3 h, and nothing else       lasts
//	of late 120 an hour besides                runs dry about 21:10, 2 h 50 m before the reset
//	1,200 units set aside until 14:00          exhausted until 14:00
//	32 units every 5 minutes instead           lasts, and 844 of 1,144 runs of 4 are left out
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
	Pages    int          // of a run
	Price    []quota.Cost // of a page
	Weight   int64        // what it may take when units are short, as in package share
	Priority int64
	Floor    int64 // units a day, which a pace does not hold back either
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

// Short reports whether units will be found missing before the reset.
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
	OpensAt        time.Time // when units come free after DryAt; when Exhausted, also if it is after ResetAt
	Chance         float64   // of running dry before ResetAt, 0 to 1
	SuspendedUntil time.Time
	Limit          string    // that is short, or by which the first run is lost; "" when none is
	Remaining      int64     // units for scheduled charges now
	Rate           Rate      // of unscheduled spending
	Scheduled      Work      // of the runs until ResetAt
	Lost           Work      // of those, in the likely day
	LeftOut        Work      // of those lost, the runs that are left out by their shares
	LostRuns       []LostRun // in the order of their times

	slides bool           // ResetAt is no reset: all windows slide
	brakes []string       // the names of paces and throttles
	zone   *time.Location // of the reader; nil for UTC alone
}

// Rate is units an hour until the reset: in one of ten of the days foretold it is less than Low, in as many more than High.
type Rate struct{ Low, Likely, High float64 }

// Work is what runs take.
type Work struct{ Runs, Pages, Units int64 }

// and is the sum.
func (w Work) and(v Work) Work { return Work{w.Runs + v.Runs, w.Pages + v.Pages, w.Units + v.Units} }

// LostRun is a run that loses pages.
type LostRun struct {
	schedule.Tick
	Pages int // that it wants
	Lost  int
	Limit string // by which: the name of a limit, quota.PaceName, quota.Suspended or ShareName
}

// Short reports whether something that is wanted before the reset will be denied or left out.
func (f Forecast) Short() bool { return f.Verdict.Short() || f.Lost.Runs > 0 }

// days is how many days are played.
const days = 200

// Of foretells.
func Of(b Bucket) Forecast {
	g := newGrid(b)
	f := Forecast{
		Bucket: b.Name, At: b.At, ResetAt: g.end, SuspendedUntil: b.SuspendedUntil, Scheduled: g.scheduled(),
		Verdict: Lasts, Remaining: max(0, g.now()), slides: g.slides,
	}
	for _, l := range g.brakes {
		if name := l.limit.Name(); !slices.Contains(f.brakes, name) {
			f.brakes = append(f.brakes, name)
		}
	}
	if !b.SuspendedUntil.After(b.At) {
		f.SuspendedUntil = time.Time{}
	}
	h := newHabit(b)
	g.share(h.idle())
	played := play(g, h)
	f.Rate = rates(played)
	slices.SortStableFunc(played, func(a, b outcome) int { // of those that do not run dry, the one in the middle is likely
		return cmp.Or(cmp.Compare(a.dry, b.dry), cmp.Compare(b.rate, a.rate))
	})
	f.Earliest, f.Latest = moment(quantile(played, 0.1).dry), moment(quantile(played, 0.9).dry)
	for _, o := range played {
		if o.dry != never {
			f.Chance += 1 / float64(len(played))
		}
	}
	f.Chance = math.Round(f.Chance*1000) / 1000
	likely := quantile(played, 0.5)
	if likely.diary == nil {
		likely.diary = new(diary)
		g.walk(likely, likely.diary)
	}
	g.tell(&f, likely)
	return f
}

// tell fills in what the likely day brings, and the verdict.
func (g *grid) tell(f *Forecast, likely outcome) {
	d := likely.diary
	f.DryAt, f.OpensAt, f.Limit, f.Lost, f.LeftOut, f.LostRuns = moment(likely.dry), moment(d.opens), d.limit, d.lost, d.leftOut, d.runs
	if f.Limit == "" && len(d.runs) > 0 {
		f.Limit = d.runs[0].Limit
	}
	switch {
	case g.closed():
		f.Verdict, f.DryAt, f.Earliest, f.Latest, f.OpensAt, f.Chance = Closed, time.Time{}, time.Time{}, time.Time{}, time.Time{}, 0
	case !f.SuspendedUntil.IsZero():
		f.Verdict, f.Limit = Suspended, quota.Suspended
	case g.now() <= 0:
		f.Verdict, f.DryAt, f.Earliest, f.Latest, f.Chance = Exhausted, f.At, f.At, f.At, 1
		f.OpensAt, f.Limit = moment(d.opensFirst), g.tightest(0, nil)
		if d.opensFirst == 0 {
			f.OpensAt = moment(g.frees())
		}
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
