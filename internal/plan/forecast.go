package plan

import (
	"math"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
	"quotabudget/internal/words"
)

// A forecast computes when a bucket will run dry. It does not extrapolate a straight line. The
// schedule is known, tick by tick; units leave sliding windows again; reservations count until they
// expire; and only the rest, the unscheduled spending, is projected from the last two days of the
// log. Because that spending is uncertain, the plan is played three times: with its median, which
// gives the verdict, and with its 10th and 90th percentile, which give the interval. The median is
// the usual spending of the last hours, or of the same hours of the days before where spending
// follows the clock. The percentiles depend on the errors of earlier predictions, on whether a
// surge is a burst or a runaway job, and on earlier runaway jobs.
//
// Scheduled runs are those of a plan: without unscheduled spending, a forecast and a plan lose the
// same runs. A run that is left out, or held back by a pace or a limit on less than ten minutes, is
// lost, but does not mean that the bucket runs dry.
//
// Worked example, a day's limit of 9,500 units for scheduled charges, at 12:00, 12 h before the
// reset, 8,300 spent:
//
//	32 units every 3 h, and nothing else       lasts
//	120 an hour recently in addition           runs dry about 21:10
//	1,200 units held until 14:00               exhausted until 14:00
//	32 units every 5 minutes instead           lasts, and 844 of 1,144 runs are left out

// Bucket is the known state of one bucket at one moment.
type Bucket struct {
	Standing           // its Spent reaches back over Memory(Limits)
	At       time.Time // the ledger's time
	Limits   []quota.Limit
	Paces    []quota.Limit // hold back scheduled runs
	// the upstream's day, at whose end the forecast ends; zero for none
	Reset  quota.Window
	Lanes  []share.Lane // all lanes that spend from the credential
	Price  int64        // units of the bucket per page of a lane; 0 for none
	Amount Amount
}

// Amount formats units of a bucket: "1,240 tokens", "$8.20". The nil Amount formats plain units.
type Amount func(units int64) string

func (a Amount) of(units int64) string {
	if a == nil {
		return words.Count(units) + " units"
	}
	return a(units)
}

// Verdict is the result in a word.
type Verdict string

// Verdicts.
const (
	Lasts     Verdict = "lasts"     // the units last until the reset
	RunsDry   Verdict = "runs_dry"  // before the reset
	Exhausted Verdict = "exhausted" // now
	Suspended Verdict = "suspended" // the upstream, or a person, has closed the bucket
	Closed    Verdict = "closed"    // a limit allows nothing, ever
	Unused    Verdict = "unused"    // nothing is spent, held or scheduled: nothing to forecast
)

// Short reports whether units will be missing before the reset.
func (v Verdict) Short() bool { return v == RunsDry || v == Exhausted || v == Suspended }

// Forecast holds the time when a bucket runs dry, and the lost runs. Times at or after ResetAt are
// zero.
type Forecast struct {
	Bucket         string
	At             time.Time
	ResetAt        time.Time // the next reset; if all windows slide, one window from now
	Slides         bool      // ResetAt is not a reset, because all windows slide
	Verdict        Verdict
	DryAt          time.Time // first denial with the likely spending
	Earliest       time.Time // DryAt with more spending than on nine of ten days
	Latest         time.Time // DryAt with less spending than on nine of ten days
	OpensAt        time.Time // when units come free after DryAt; for Exhausted even after ResetAt
	SuspendedUntil time.Time
	Limit          string // limit that runs out, or that denies the first lost run; "" if none
	Advice         string // how to avoid every loss; "" if nothing is lost or nothing helps
	Remaining      int64  // units left now for scheduled charges
	Rate           Rate   // rate of unscheduled spending
	Scheduled      Work   // runs until ResetAt
	Lost           Work   // part of Scheduled that is lost with the likely spending
	LeftOut        Work   // part of Lost: runs left out by their shares
	LostRuns       []Run  // in order of time
	Missing        int64  // units lacking for Scheduled and the likely Rate

	history time.Duration // length of the log
	amount  Amount
	window  quota.Window   // the longest calendar window, if it ends at ResetAt
	brakes  []string       // names of throttles and paces
	zone    *time.Location // the reader's; nil for UTC only
}

// Rate is in units per hour until the reset. One day in ten is below Low, and one in ten above
// High.
type Rate struct {
	Low    float64 `json:"low"`
	Likely float64 `json:"likely"`
	High   float64 `json:"high"`
}

// Work counts runs, their pages and their units.
type Work struct {
	Runs  int64 `json:"runs"`
	Pages int64 `json:"pages"`
	Units int64 `json:"units"`
}

func (w Work) and(v Work) Work {
	return Work{w.Runs + v.Runs, w.Pages + v.Pages, w.Units + v.Units}
}

// Short reports whether anything wanted before the reset will be denied or left out.
func (f Forecast) Short() bool { return f.Verdict.Short() || f.Lost.Runs > 0 }

// ForecastOf computes the forecast of a bucket.
func ForecastOf(b Bucket) Forecast {
	o := newOutlook(b)
	f := Forecast{
		Bucket: b.Name, At: b.At, ResetAt: o.end, Verdict: Lasts, Remaining: max(0, o.now),
		amount: b.Amount, window: o.window, Slides: o.slides, brakes: o.brakes,
	}
	if len(b.Spent) > 0 {
		f.history = b.At.Sub(b.Spent[0].At)
	}
	if b.SuspendedUntil.After(b.At) {
		f.SuspendedUntil = b.SuspendedUntil
	}
	h := newHabit(b)
	o.size = h.size
	bins := int((o.end.Sub(o.At) + bin - 1) / bin)
	low, likely, high := h.loads(bins)
	f.Rate = Rate{oneDigit(low.perHour()), oneDigit(likely.perHour()), oneDigit(high.perHour())}
	p := o.play(likely, atReset)
	early, late := p.dry, p.dry
	if f.Rate.High > 0 {
		early = min(early, o.play(high, whenDry).dry)
		late = max(late, o.play(low, whenDry).dry)
	}
	f.Earliest, f.Latest = timeOf(early), timeOf(late)
	o.fill(&f, p)
	if f.Short() && f.Verdict != Closed && f.Verdict != Suspended {
		f.Advice = o.advise(likely)
	}
	return f
}

func oneDigit(rate float64) float64 { return math.Round(rate*10) / 10 }

// fill sets the results of the play with the likely spending, and the verdict.
func (o *outlook) fill(f *Forecast, p playResult) {
	f.DryAt, f.OpensAt, f.Limit = timeOf(p.dry), timeOf(p.opens), p.limit
	f.Scheduled, f.Lost, f.LeftOut, f.LostRuns = p.scheduled, p.lost, p.leftOut, p.runs
	if p.dry != never {
		f.Missing = o.missing(*f)
	}
	if f.Limit == "" && len(p.runs) > 0 {
		f.Limit = p.runs[0].Limit
	}
	switch {
	case slices.ContainsFunc(o.long, func(l quota.Limit) bool { return l.Cap(false) == 0 }):
		var none time.Time
		f.Missing, f.Verdict = 0, Closed
		f.DryAt, f.Earliest, f.Latest, f.OpensAt = none, none, none, none
	case !f.SuspendedUntil.IsZero():
		f.Verdict, f.Limit = Suspended, quota.Suspended
	case o.now <= 0:
		f.Verdict, f.DryAt, f.Earliest, f.Latest = Exhausted, f.At, f.At, f.At
		f.OpensAt, f.Limit = o.opensFirst(p), p.tightest
	case p.dry != never:
		f.Verdict = RunsDry
	case len(o.Spent) == 0 && len(o.Reservations) == 0 && p.scheduled.Runs == 0:
		f.Verdict = Unused
	}
}

// missing returns how many more units the window that ends with the forecast would need for the
// runs and for unscheduled spending at the likely rate.
func (o *outlook) missing(f Forecast) (units int64) {
	play := o.plan.Play()
	used := play.Used(o.At.UnixMicro(), nil)
	wanted := f.Scheduled.Units + int64(f.Rate.Likely*f.ResetAt.Sub(f.At).Hours())
	for i, l := range play.Windows() {
		if l.Window.IsCalendar() && l.Window.String() == o.window.String() && l.Pace == nil {
			units = max(units, wanted-(l.Cap(false)-used[i]))
		}
	}
	return units
}

const never = int64(math.MaxInt64)

func timeOf(micros int64) time.Time {
	if micros == never || micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
