// Package forecast computes when each bucket will run dry.
//
// It is no straight line: the schedule is known, tick by tick; units leave sliding windows again;
// reservations count until they expire; and only what is left over, the spending that no schedule
// announced, is projected from the last two days of the log. Nobody knows how that spending will
// go, so 200 possible days are played (package sim), always the same 200: their median is the
// verdict, and eight tenths of them are the interval. They differ in how much of the log counts, in
// how far off predictions from it have been, when bursts come, whether a surge is a burst or a job
// that has run away, whether spending follows the hours of the day, and whether a job runs away
// later.
//
// Scheduled runs are played as in a plan: where nothing is unscheduled, the same runs are lost. A
// run that is left out, or held back by a pace or by a limit on less than ten minutes, is lost, but
// the bucket does not run dry because of it.
//
// Worked example, a day's limit of 9,500 units for scheduled charges, at 12:00, 12 h before the
// reset, 8,300 spent:
//
//	32 units every 3 h, and nothing else       lasts
//	of late 120 an hour besides                runs dry about 21:10
//	1,200 units set aside until 14:00          exhausted until 14:00
//	32 units every 5 minutes instead           lasts, and 844 of 1,144 runs are left out
package forecast

import (
	"cmp"
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// Bucket is what is known of one bucket at one moment.
type Bucket struct {
	Name           string
	At             time.Time // by the ledger's clock
	Limits         []quota.Limit
	Paces          []quota.Limit // that hold scheduled runs back
	Reset          quota.Window  // the upstream's day, whose end is the forecast's; zero for none
	SuspendedUntil time.Time     // zero when the bucket is open
	ResetAt        time.Time     // of an anchored window, as far as is known
	Reservations   []quota.Reservation
	Spent          []quota.Spent // after At - Memory(Limits), oldest first
	Lanes          []share.Lane  // all that spend from the credential
	Price          int64         // units of the bucket that a page of them takes; 0 for none
	Amount         Amount
}

// Amount writes units of a bucket in words: "1,240 tokens", "$8.20". The nil Amount writes units.
type Amount func(units int64) string

func (a Amount) of(units int64) string {
	if a == nil {
		return number(units) + " units"
	}
	return a(units)
}

// Verdict is the answer in a word.
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

// Forecast is when a bucket runs dry, and what is lost by it. Moments that do not come before
// ResetAt are zero.
type Forecast struct {
	Bucket         string
	At             time.Time
	ResetAt        time.Time // the next reset, or where all windows slide, one of them from now
	Verdict        Verdict
	DryAt          time.Time // when something will be denied; as likely before as after
	Earliest       time.Time // one in ten of the days played runs dry before
	Latest         time.Time // nine in ten run dry before
	OpensAt        time.Time // when units come free after DryAt; when Exhausted, even after ResetAt
	Chance         float64   // of running dry before ResetAt, 0 to 1
	SuspendedUntil time.Time
	Limit          string    // that is short, or by which the first run is lost; "" when none is
	Advice         string    // what avoids every loss; "" when nothing is lost, or nothing helps
	Remaining      int64     // units for scheduled charges now
	Rate           Rate      // of unscheduled spending
	Scheduled      Work      // of the runs until ResetAt
	Lost           Work      // of those, in the likely day
	LeftOut        Work      // of those lost, the runs that are left out by their shares
	LostRuns       []LostRun // in the order of their times
	Missing        int64     // units that are too few for Scheduled and the likely Rate

	told   time.Duration // how far back the log goes
	amount Amount
	window quota.Window   // the longest that follows the calendar, if that ends at ResetAt
	slides bool           // ResetAt is no reset: all windows slide
	brakes []string       // the names of throttles and paces
	zone   *time.Location // of the reader; nil for UTC alone
}

// Rate is units an hour until the reset: in one of ten of the days played it is less than Low, in
// as many more than High.
type Rate struct{ Low, Likely, High float64 }

// Work is what runs take.
type Work struct{ Runs, Pages, Units int64 }

// and is the sum.
func (w Work) and(v Work) Work {
	return Work{w.Runs + v.Runs, w.Pages + v.Pages, w.Units + v.Units}
}

// LostRun is a run that loses pages.
type LostRun struct {
	schedule.Tick
	Pages int64 // that it wants
	Lost  int64
	Limit string // by which, as in sim.Run
}

// Short reports whether something that is wanted before the reset will be denied or left out.
func (f Forecast) Short() bool { return f.Verdict.Short() || f.Lost.Runs > 0 }

// Of computes the forecast of a bucket.
func Of(b Bucket) Forecast {
	o := newOutlook(b, nil)
	f := Forecast{
		Bucket: b.Name, At: b.At, ResetAt: o.end, Verdict: Lasts, Remaining: max(0, o.now),
		amount: b.Amount, window: o.window, slides: o.slides, brakes: o.brakes,
	}
	if len(b.Spent) > 0 {
		f.told = b.At.Sub(b.Spent[0].At)
	}
	if b.SuspendedUntil.After(b.At) {
		f.SuspendedUntil = b.SuspendedUntil
	}
	played := o.days()
	f.Rate = rates(played)
	// Of days that do not run dry, the one in the middle is likely.
	slices.SortStableFunc(played, func(a, b day) int {
		return cmp.Or(cmp.Compare(a.dry, b.dry), cmp.Compare(b.rate, a.rate))
	})
	f.Earliest, f.Latest = moment(quantile(played, 0.1).dry), moment(quantile(played, 0.9).dry)
	for _, d := range played {
		if d.dry != never {
			f.Chance += 1 / float64(len(played))
		}
	}
	f.Chance = math.Round(f.Chance*1000) / 1000
	o.fill(&f, quantile(played, 0.5))
	if f.Short() && f.Verdict != Closed && f.Verdict != Suspended {
		f.Advice = o.advise(quantile(played, 0.4))
	}
	return f
}

// fill sets what the likely day brings, and the verdict.
func (o *outlook) fill(f *Forecast, likely day) {
	t := trace{}
	o.play(likely, &t)
	f.DryAt, f.OpensAt, f.Limit = moment(likely.dry), moment(t.opens), t.limit
	f.Scheduled, f.Lost, f.LeftOut, f.LostRuns = t.scheduled, t.lost, t.leftOut, t.runs
	if likely.dry != never {
		f.Missing = o.missing(*f)
	}
	if f.Limit == "" && len(t.runs) > 0 {
		f.Limit = t.runs[0].Limit
	}
	switch {
	case o.closed():
		var none time.Time
		f.Missing = 0
		f.Verdict, f.Chance = Closed, 0
		f.DryAt, f.Earliest, f.Latest, f.OpensAt = none, none, none, none
	case !f.SuspendedUntil.IsZero():
		f.Verdict, f.Limit = Suspended, quota.Suspended
	case o.now <= 0:
		f.Verdict, f.DryAt, f.Earliest, f.Latest, f.Chance = Exhausted, f.At, f.At, f.At, 1
		f.OpensAt, f.Limit = moment(o.opensFirst(t)), t.tightest
	case likely.dry != never:
		f.Verdict = RunsDry
	}
}

// missing is how many units more the window that ends with the forecast would have to leave for the
// runs, and for what is spent besides at the likely rate.
func (o *outlook) missing(f Forecast) (units int64) {
	used := o.course.Play().Used(o.At.UnixMicro(), nil)
	wanted := f.Scheduled.Units + int64(f.Rate.Likely*f.ResetAt.Sub(f.At).Hours())
	for i, l := range o.course.Windows() {
		if l.Window.IsCalendar() && l.Window.String() == o.window.String() && l.Pace == nil {
			units = max(units, wanted-(l.Cap(false)-used[i]))
		}
	}
	return units
}

const never = int64(math.MaxInt64)

func moment(micros int64) time.Time {
	if micros == never || micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// quantile is the value below which q of the sorted days lie.
func quantile(sorted []day, q float64) day { return sorted[int(q*float64(len(sorted)))] }

func rates(played []day) Rate {
	byRate := func(a, b day) int { return cmp.Compare(a.rate, b.rate) }
	sorted := slices.SortedFunc(slices.Values(played), byRate)
	at := func(q float64) float64 { return math.Round(quantile(sorted, q).rate*10) / 10 }
	return Rate{at(0.1), at(0.5), at(0.9)}
}
