package main

import (
	"math"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

type useJSON struct {
	Limit    string   `json:"limit"`
	Bucket   string   `json:"bucket"`
	Window   string   `json:"window"`
	Timezone *string  `json:"timezone"` // null for windows that slide
	Units    int64    `json:"units"`
	Headroom int64    `json:"headroom"`
	Cap      int64    `json:"cap"`
	Peak     int64    `json:"peak"`
	PeakAt   cli.Time `json:"peak_at"`
	Percent  *float64 `json:"peak_percent"` // null where the limit allows nothing
	Margin   int64    `json:"margin"`
}

func outwardUses(uses []plan.Use) []useJSON {
	out := []useJSON{}
	for _, u := range uses {
		l, w := u.Limit, u.Limit.Window
		j := useJSON{l.Name(), l.Bucket, w.Text(), cli.OrNull(w.ZoneName()), l.Units, l.Headroom,
			u.Cap, u.Peak, cli.Time(u.At), nil, u.Margin}
		if u.Cap > 0 {
			j.Percent = new(percentOf(u))
		}
		out = append(out, j)
	}
	return out
}

// percentOf is the peak in per cent of the limit's cap. Given to --fail-over it lets that very peak
// pass.
func percentOf(u plan.Use) float64 {
	percent := 100 * float64(u.Peak) / float64(u.Cap)
	for partOf(percent) < u.Share() {
		percent = math.Nextafter(percent, math.Inf(1))
	}
	return percent
}

type lostJSON struct {
	At      cli.Time `json:"at"`
	Tick    string   `json:"tick"`
	Job     string   `json:"job"`
	Region  string   `json:"region"`
	Outcome string   `json:"outcome"`
	Limit   string   `json:"limit"`
	RetryAt cli.Time `json:"retry_at"`
	Pages   int64    `json:"pages"`
	Wanted  int64    `json:"pages_wanted"`
}

func outwardLost(r *plan.Run) *lostJSON {
	if r == nil {
		return nil
	}
	return &lostJSON{cli.Time(r.At), r.ID(), r.Job, r.Region, r.Outcome.String(), r.Limit,
		cli.Time(r.RetryAt), r.Pages, r.Wanted}
}

type laneJSON struct {
	Job    string `json:"job"`
	Region string `json:"region"`
	Each   int64  `json:"pages_per_run,omitempty"`
	plan.Counts
}

type dayJSON struct {
	Bucket  string   `json:"bucket"`
	Start   cli.Time `json:"start"`
	End     cli.Time `json:"end"`
	Planned int64    `json:"planned"`
	Spent   int64    `json:"spent"`
	plan.Counts
	Windows []useJSON  `json:"windows"`
	First   *lostJSON  `json:"first_lost"`
	Lost    []laneJSON `json:"lost"`
	Crowded int        `json:"crowded_minutes"`
	Busiest cli.Time   `json:"busiest_at"`
	Ticks   int        `json:"busiest_ticks"`
}

type collisionJSON struct {
	Lanes []string `json:"lanes"`
	Ticks int      `json:"ticks"`
	First cli.Time `json:"first"`
	Times int      `json:"times"`
}

type suggestionJSON struct {
	Schedule string    `json:"schedule"`
	Timezone string    `json:"timezone"`
	Stagger  string    `json:"stagger"`
	StaggerS int64     `json:"stagger_seconds"`
	Pages    *int64    `json:"pages"` // null when the charts keep theirs, and these differ
	PerDay   int64     `json:"runs_per_day"`
	Windows  []useJSON `json:"windows"`
}

type planJSON struct {
	From cli.Time `json:"from"`
	To   cli.Time `json:"to"`
	Days int      `json:"days"`
	Fits bool     `json:"fits"`
	Over []string `json:"over"`
	plan.Counts
	Windows    []useJSON       `json:"windows"`
	ByDay      []dayJSON       `json:"by_day"`
	Regions    []laneJSON      `json:"regions"`
	First      *lostJSON       `json:"first_lost"`
	Lost       []lostJSON      `json:"lost"`
	More       int             `json:"lost_not_listed"`
	Collisions []collisionJSON `json:"collisions"`
	Suggestion *suggestionJSON `json:"suggestion"`
}

func (o *planned) json() planJSON {
	r := &o.report
	out := planJSON{From: cli.Time(r.From), To: cli.Time(r.To), Days: o.flags.days, Fits: r.Fits(),
		Over: []string{}, Counts: r.Counts, Windows: outwardUses(r.Windows), ByDay: []dayJSON{},
		Regions: []laneJSON{}, First: outwardLost(r.First), Lost: []lostJSON{}, More: o.more,
		Collisions: []collisionJSON{}}
	for _, u := range r.Over(o.share) {
		out.Over = append(out.Over, u.Limit.Name())
	}
	for _, d := range r.Days {
		j := dayJSON{d.Bucket, cli.Time(d.Start), cli.Time(d.End), d.Planned, d.Spent, d.Counts,
			outwardUses(d.Windows), outwardLost(d.First), []laneJSON{}, d.Crowded,
			cli.Time(d.Busiest), d.Ticks}
		for _, l := range d.Losing {
			j.Lost = append(j.Lost, laneJSON{Job: l.Job, Region: l.Region, Counts: l.Counts})
		}
		out.ByDay = append(out.ByDay, j)
	}
	for i, l := range r.Lanes {
		out.Regions = append(out.Regions,
			laneJSON{l.Job, l.Region, o.plan.Lanes[i].Pages, l.Counts})
	}
	for i := range o.lost {
		out.Lost = append(out.Lost, *outwardLost(&o.lost[i]))
	}
	for _, c := range r.Collisions {
		out.Collisions = append(out.Collisions,
			collisionJSON{c.Lanes, c.Ticks, cli.Time(c.First), c.Times})
	}
	if s := o.suggestion; s != nil {
		out.Suggestion = &suggestionJSON{s.Spec, s.Zone.String(), s.Stagger.String(),
			cli.Seconds(s.Stagger), nil, s.PerDay(), outwardUses(s.Report.Windows)}
		if s.Pages > 0 {
			out.Suggestion.Pages = &s.Pages
		}
	}
	return out
}

// fullest is the limit of the series that comes closest to its cap, -1 when there is none.
func (o *planned) fullest() int {
	best, share := -1, -1.0
	for i, u := range o.report.Windows {
		if i < len(o.report.Series) && u.Limit.Pace == nil && u.Share() > share {
			best, share = i, u.Share()
		}
	}
	return best
}

// dateOf is the date that an upstream day has where its bucket resets.
func (o *planned) dateOf(start time.Time) string {
	return start.In(o.zone).Format("2006-01-02 Mon")
}

// clock is a moment in UTC by the minute, with the date unless it is that of the upstream day which
// began at start.
func (o *planned) clock(start, at time.Time) string {
	if at.UTC().Format(time.DateOnly) == start.In(o.zone).Format(time.DateOnly) {
		return at.UTC().Format("15:04Z")
	}
	return at.UTC().Format("2006-01-02 15:04Z")
}

func columnOf(l quota.Limit) string {
	if l.Pace != nil {
		return quota.PaceName
	}
	return l.Window.Text()
}
