package report

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/plan"
	"quotabudget/internal/words"
)

// Planned is a plan with its results.
type Planned struct {
	Plan       plan.Plan
	Report     plan.Report
	Days       int
	Share      float64 // fraction of a limit that peaks may reach; +Inf for any
	Lost       []plan.Run
	More       int         // lost runs that are not in Lost
	LostHours  []time.Time // the hours with lost runs
	Suggestion *plan.Suggestion
	Costs      *costs.Table // names the buckets' units
	Assumed    bool         // nothing is scheduled: the plan uses the default schedule
}

const maxLost = 1000

// Lose records a lost run. Runs are in order of time.
func (o *Planned) Lose(r plan.Run) {
	if hour, n := r.At.Truncate(time.Hour), len(o.LostHours); n == 0 ||
		hour.After(o.LostHours[n-1]) {
		o.LostHours = append(o.LostHours, hour)
	}
	if len(o.Lost) == maxLost {
		o.More++
		return
	}
	o.Lost = append(o.Lost, r)
}

// LimitUse is how close a schedule comes to a limit.
type LimitUse struct {
	Limit    string     `json:"limit"`
	Bucket   string     `json:"bucket"`
	Window   string     `json:"window"`
	Timezone *string    `json:"timezone"` // null for windows that slide
	Units    int64      `json:"units"`
	Headroom int64      `json:"headroom"`
	Cap      int64      `json:"cap"`
	Peak     int64      `json:"peak"`
	PeakAt   words.Time `json:"peak_at"`
	Percent  *float64   `json:"peak_percent"` // null where the limit allows nothing
	Margin   int64      `json:"margin"`
	Unit     string     `json:"unit"`
}

func newLimitUses(table *costs.Table, uses []plan.Use) []LimitUse {
	out := []LimitUse{}
	for _, u := range uses {
		l, w := u.Limit, u.Limit.Window
		j := LimitUse{l.Name(), l.Bucket, w.Text(), words.OrNull(w.ZoneName()), l.Units, l.Headroom,
			u.Cap, u.Peak, words.Time(u.At), nil, u.Margin, UnitOf(table, l.Bucket).String()}
		if u.Cap > 0 {
			percent := 100 * float64(u.Peak) / float64(u.Cap)
			// Round up, so that --fail-over with this figure accepts exactly this peak.
			for PartOf(percent) < u.Share() {
				percent = math.Nextafter(percent, math.Inf(1))
			}
			j.Percent = &percent
		}
		out = append(out, j)
	}
	return out
}

// LostTick is a run that gets fewer pages than it wants.
type LostTick struct {
	At      words.Time `json:"at"`
	Tick    string     `json:"tick"`
	Job     string     `json:"job"`
	Region  string     `json:"region"`
	Outcome string     `json:"outcome"`
	Limit   string     `json:"limit"`
	RetryAt words.Time `json:"retry_at"`
	Pages   int64      `json:"pages"`
	Wanted  int64      `json:"pages_wanted"`
}

func newLostTick(r *plan.Run) *LostTick {
	if r == nil {
		return nil
	}
	return &LostTick{words.Time(r.At), r.ID(), r.Job, r.Region, r.Outcome.String(), r.Limit,
		words.Time(r.RetryAt), r.Pages, r.Wanted}
}

// LanePlan holds the outcomes of the runs of one region.
type LanePlan struct {
	Job    string `json:"job"`
	Region string `json:"region"`
	Each   int64  `json:"pages_per_run,omitempty"`
	// Learned is the number of earlier runs whose mean units are the cost of a run.
	Learned int64              `json:"learned_runs,omitempty"`
	Took    map[string]float64 `json:"units_per_run,omitempty"` // means by bucket
	plan.Counts
}

// DayPlan holds the outcomes of the runs of one upstream day.
type DayPlan struct {
	Bucket  string     `json:"bucket"`
	Start   words.Time `json:"start"`
	End     words.Time `json:"end"`
	Planned int64      `json:"planned"`
	Spent   int64      `json:"spent"`
	plan.Counts
	Windows []LimitUse `json:"windows"`
	First   *LostTick  `json:"first_lost"`
	Lost    []LanePlan `json:"lost"`
	Crowded int        `json:"crowded_minutes"`
	Busiest words.Time `json:"busiest_at"`
	Ticks   int        `json:"busiest_ticks"`
}

// Collision is a set of regions whose ticks coincide.
type Collision struct {
	Lanes []string   `json:"lanes"`
	Ticks int        `json:"ticks"`
	First words.Time `json:"first"`
	Times int        `json:"times"`
}

// Suggestion is a schedule that fits.
type Suggestion struct {
	Schedule string     `json:"schedule"`
	Timezone string     `json:"timezone"`
	Stagger  string     `json:"stagger"`
	StaggerS int64      `json:"stagger_seconds"`
	Pages    *int64     `json:"pages"` // null if the charts keep different numbers of pages
	PerDay   int64      `json:"runs_per_day"`
	Windows  []LimitUse `json:"windows"`
}

// Plan holds the units that a schedule will spend, and the lost runs.
type Plan struct {
	From words.Time `json:"from"`
	To   words.Time `json:"to"`
	Days int        `json:"days"`
	// Assumed reports that nothing is scheduled, and the default schedule is planned.
	Assumed bool     `json:"default_schedule"`
	Fits    bool     `json:"fits"`
	Over    []string `json:"over"`
	plan.Counts
	Windows    []LimitUse  `json:"windows"`
	Unplayed   []string    `json:"unplayed"` // limits per label
	ByDay      []DayPlan   `json:"by_day"`
	Regions    []LanePlan  `json:"regions"`
	First      *LostTick   `json:"first_lost"`
	Lost       []LostTick  `json:"lost"`
	More       int         `json:"lost_not_listed"`
	Collisions []Collision `json:"collisions"`
	Suggestion *Suggestion `json:"suggestion"`
}

// NewPlan returns the JSON form of a plan.
func NewPlan(o Planned) Plan {
	r := &o.Report
	out := Plan{From: words.Time(r.From), To: words.Time(r.To), Days: o.Days, Assumed: o.Assumed,
		Fits: r.Fits(),
		Over: []string{}, Counts: r.Counts, Windows: newLimitUses(o.Costs, r.Windows),
		ByDay: []DayPlan{}, Regions: []LanePlan{}, First: newLostTick(r.First),
		Lost: []LostTick{}, More: o.More, Collisions: []Collision{},
		Unplayed: append([]string{}, o.Plan.Unplayed...)}
	for _, u := range r.Over(o.Share) {
		out.Over = append(out.Over, u.Limit.Name())
	}
	for _, d := range r.Days {
		j := DayPlan{d.Bucket, words.Time(d.Start), words.Time(d.End), d.Planned, d.Spent, d.Counts,
			newLimitUses(o.Costs, d.Windows), newLostTick(d.First), []LanePlan{}, d.Crowded,
			words.Time(d.Busiest), d.Ticks}
		for _, l := range d.Losing {
			j.Lost = append(j.Lost, LanePlan{Job: l.Job, Region: l.Region, Counts: l.Counts})
		}
		out.ByDay = append(out.ByDay, j)
	}
	for i, l := range r.Lanes {
		lane := &o.Plan.Lanes[i]
		var mean map[string]float64
		if lane.Runs > 0 {
			mean = make(map[string]float64)
			for _, c := range lane.LearnedCosts {
				mean[c.Bucket] = math.Round(100*float64(c.Units)/float64(lane.Runs)) / 100
			}
		}
		out.Regions = append(out.Regions, LanePlan{l.Job, l.Region, lane.Pages, lane.Runs, mean,
			l.Counts})
	}
	for i := range o.Lost {
		out.Lost = append(out.Lost, *newLostTick(&o.Lost[i]))
	}
	for _, c := range r.Collisions {
		out.Collisions = append(out.Collisions,
			Collision{c.Lanes, c.Ticks, words.Time(c.First), c.Times})
	}
	if s := o.Suggestion; s != nil {
		out.Suggestion = &Suggestion{s.Spec, s.Zone.String(), s.Stagger.String(),
			words.Seconds(s.Stagger), nil, s.PerDay(), newLimitUses(o.Costs, s.Report.Windows)}
		if s.Pages > 0 {
			out.Suggestion.Pages = &s.Pages
		}
	}
	return out
}

// PartOf converts percent to the closest float64 fraction, to compare with plan.Use: 2.9 gives
// 0.029, although 2.9/100 is slightly less.
func PartOf(percent float64) float64 {
	exact, _ := new(big.Rat).SetString(strconv.FormatFloat(percent, 'g', -1, 64)) // never fails
	part, _ := exact.Quo(exact, big.NewRat(100, 1)).Float64()
	return part
}

// Peaks returns the use of a limit in the given number of columns, each the peak of its steps. If
// there are fewer steps than columns, a step fills several columns.
func Peaks(use []int64, columns int) (peaks []float64) {
	if len(use) == 0 {
		return nil
	}
	for i := range columns {
		from := i * len(use) / columns
		to := max(from+1, (i+1)*len(use)/columns)
		peaks = append(peaks, float64(slices.Max(use[from:to])))
	}
	return peaks
}
