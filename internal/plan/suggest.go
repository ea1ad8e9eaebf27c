package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// Suggestion is one schedule for all jobs that loses no run.
type Suggestion struct {
	Spec    string         // a cron spec, or "@every 45m" if cron cannot express it
	Zone    *time.Location // of the spec
	Every   time.Duration  // between two ticks of a lane
	Stagger time.Duration  // between two lanes of a job
	Pages   int64          // of every chart; 0 if the lanes keep different pages
	Report  Report         // of Tried
	Tried   Plan           // the plan that fits
}

// Wish describes the suggestion wanted.
type Wish struct {
	Zone *time.Location // of its spec
	// Share is the fraction of each limit's Cap that peaks may reach; with +Inf only lost runs
	// matter.
	Share float64
}

// PerDay returns the runs of all lanes in 24 hours.
func (s Suggestion) PerDay() (runs int64) {
	for _, l := range s.Tried.Lanes {
		if l.HasRegion() {
			runs += int64(24 * time.Hour / s.Every)
		}
	}
	return runs
}

// minPlayed is the minimum time to simulate, which includes both clock changes.
const minPlayed = 366 * 24 * time.Hour

// Suggest finds the tightest schedule that fits: the one with the most runs among those that
// divide the day into equal parts. It keeps the lanes' pages if at least one run a day fits with
// them; otherwise all charts get the same smaller number of pages. Commands keep their schedules.
// It returns false if not even a page a day fits, if there are only commands, or if ctx ends first.
func (p Plan) Suggest(ctx context.Context, wish Wish) (Suggestion, bool) {
	if !slices.ContainsFunc(p.Lanes, share.Lane.HasRegion) {
		return Suggestion{}, false
	}
	p.Watch, p.Step = nil, 0
	if least := p.From.Add(minPlayed); p.To.Before(least) {
		_, p.To = p.Reset.Bounds(least)
	}
	s, ok := p.tightest(ctx, wish)
	for pages := p.maxPages() - 1; pages > 0 && !ok && ctx.Err() == nil; pages-- {
		p.Lanes = slices.Clone(p.Lanes)
		for i := range p.Lanes {
			if p.Lanes[i].HasRegion() {
				p.Lanes[i].Pages = pages
			}
		}
		s, ok = p.tightest(ctx, wish)
	}
	return s, ok
}

// AfterReset returns the plan as it starts after the next reset, with nothing spent: at the end of
// the upstream's day, or of a limit's week or month.
func (p Plan) AfterReset() Plan {
	reset := p.Reset
	for _, l := range p.Limits {
		if l.Window.IsCalendar() && l.Window.Longest() > reset.Longest() {
			reset = l.Window
		}
	}
	_, p.From = reset.Bounds(p.From)
	p.From, p.Before = p.From.UTC(), nil
	return p
}

func (p *Plan) maxPages() (pages int64) {
	for _, l := range p.Lanes {
		pages = max(pages, l.Pages)
	}
	return pages
}

// samePages returns the pages of every chart, or 0 if they differ.
func (p *Plan) samePages() int64 {
	pages := p.maxPages()
	other := func(l share.Lane) bool { return l.HasRegion() && l.Pages != pages }
	if slices.ContainsFunc(p.Lanes, other) {
		return 0
	}
	return pages
}

// tightest returns the first schedule that fits with these pages.
func (p *Plan) tightest(ctx context.Context, wish Wish) (Suggestion, bool) {
	for _, every := range intervals() {
		if p.tooMuch(every, wish.Share) {
			continue
		}
		if s, ok := p.try(ctx, every, wish); ok || ctx.Err() != nil {
			return s, ok
		}
	}
	return Suggestion{}, false
}

// intervals returns the parts of a day in whole minutes, shortest first.
func intervals() (all []time.Duration) {
	const day = 24 * 60
	for n := 1; n <= day; n++ {
		if day%n == 0 {
			all = append(all, time.Duration(n)*time.Minute)
		}
	}
	return all
}

// tooMuch reports whether a day's runs take more than a limit of at least a day allows. Such a
// schedule need not be simulated.
func (p *Plan) tooMuch(every time.Duration, share float64) bool {
	var perDay int64
	for _, l := range p.Lanes {
		if l.HasRegion() {
			perDay += l.Pages * int64(24*time.Hour/every)
		}
	}
	for _, cost := range p.Price {
		units := float64(perDay-1) * float64(cost.Units)
		for _, l := range p.Limits {
			whole := l.Window.Calendar == "day" || l.Window.Length >= 24*time.Hour
			if l.Bucket == cost.Bucket && whole && units > min(share, 1)*float64(l.Cap(false)) {
				return true
			}
		}
	}
	return false
}

func (p *Plan) try(ctx context.Context, every time.Duration, wish Wish) (Suggestion, bool) {
	places, largest := p.places()
	s := Suggestion{Spec: specOf(every), Zone: wish.Zone, Every: every,
		Stagger: staggerOf(every, largest), Pages: p.samePages(), Tried: *p}
	parsed, err := schedule.Parse(s.Spec, wish.Zone)
	if err != nil {
		panic(fmt.Sprintf("a spec of this package: %v", err))
	}
	s.Tried.Lanes = slices.Clone(p.Lanes)
	for i := range s.Tried.Lanes {
		l := &s.Tried.Lanes[i]
		if !l.HasRegion() {
			continue
		}
		l.Schedule, l.Offset = parsed, time.Duration(places[i])*s.Stagger
	}
	fits := true
	s.Tried.Watch = func(r Run) bool {
		fits = !r.Lost() && ctx.Err() == nil
		return fits
	}
	s.Report = s.Tried.Execute()
	s.Tried.Watch = nil
	return s, fits && len(s.Report.Over(wish.Share)) == 0
}

// places returns each lane's index in its job, because staggering restarts with each job. It also
// returns the size of the largest job.
func (p *Plan) places() (places []int, largest int) {
	lanes := make(map[string]int)
	for _, l := range p.Lanes {
		places = append(places, lanes[l.Job])
		lanes[l.Job]++
		largest = max(largest, lanes[l.Job])
	}
	return places, largest
}

// specOf returns the spec for an interval: a cron spec if possible, or else "@every".
func specOf(every time.Duration) string {
	switch {
	case every == 24*time.Hour:
		return "0 0 * * *"
	case every == time.Hour:
		return "0 * * * *"
	case every == time.Minute:
		return "* * * * *"
	case every%time.Hour == 0:
		return fmt.Sprintf("0 */%d * * *", every/time.Hour)
	case time.Hour%every == 0:
		return fmt.Sprintf("*/%d * * * *", every/time.Minute)
	}
	return fmt.Sprintf("@every %dm", every/time.Minute)
}

// staggerOf spreads the lanes of a job over the interval, by whole minutes if there are enough.
func staggerOf(every time.Duration, lanes int) time.Duration {
	step := every / time.Duration(max(lanes, 1))
	if step >= time.Minute {
		return step.Truncate(time.Minute)
	}
	return step.Truncate(time.Second)
}
