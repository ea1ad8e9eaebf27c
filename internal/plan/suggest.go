package plan

import (
	"fmt"
	"time"

	"quotabudget/internal/schedule"
)

// Suggestion is a schedule for all lanes alike that loses no run.
type Suggestion struct {
	Spec    string         // a cron spec, or "@every 45m" where none says it
	Zone    *time.Location // of the spec
	Every   time.Duration  // between two ticks of a lane
	Stagger time.Duration  // between two lanes
	Pages   int64          // of a chart at most
	Report  Report         // of Tried
	Tried   Plan           // the plan that fits, as it was played
}

// Wish says what a suggestion is to be like.
type Wish struct {
	Zone     *time.Location // of its spec
	Share    float64        // of each limit's Cap that peaks may reach; 1 for all of it
	Shortest time.Duration  // least time between two ticks of a lane
}

// PerDay is the runs of all lanes in a day of 24 hours.
func (s Suggestion) PerDay() int64 { return int64(len(s.Tried.Lanes)) * int64(24*time.Hour/s.Every) }

// leastPlayed is how far a suggestion is played at least: through both changes of the clocks.
const leastPlayed = 366 * 24 * time.Hour

// Suggest finds the tightest schedule that fits: of those that divide the day into equal parts, the one with the most runs. It
// keeps the lanes' pages while even one run a day fits with them, and takes fewer when it does not. It is false when
// nothing fits, not even a page a day.
func (p Plan) Suggest(wish Wish) (Suggestion, bool) {
	p.Watch, p.Step = nil, 0
	if least := p.From.Add(leastPlayed); p.To.Before(least) {
		p.To = least
	}
	var pages int64
	for _, l := range p.Lanes {
		pages = max(pages, l.Pages)
	}
	for ; pages > 0; pages-- {
		for _, every := range intervals() {
			if every < wish.Shortest || p.tooMuch(every, pages, wish.Share) {
				continue
			}
			if s, ok := p.try(every, pages, wish); ok {
				return s, true
			}
		}
	}
	return Suggestion{}, false
}

// intervals are the parts of a day in full minutes, the shortest first.
func intervals() (all []time.Duration) {
	const day = 24 * 60
	for n := 1; n <= day; n++ {
		if day%n == 0 {
			all = append(all, time.Duration(n)*time.Minute)
		}
	}
	return all
}

// tooMuch is whether a day takes more than a limit of a day or longer has: there is no need to play it.
func (p *Plan) tooMuch(every time.Duration, pages int64, share float64) bool {
	var perDay int64
	for _, l := range p.Lanes {
		perDay += min(l.Pages, pages) * int64(24*time.Hour/every)
	}
	for _, cost := range p.Price {
		for _, l := range p.Limits {
			whole := l.Window.Calendar == "day" || l.Window.Length >= 24*time.Hour
			if l.Bucket == cost.Bucket && whole && float64(perDay-1)*float64(cost.Units) > share*float64(l.Cap(false)) {
				return true
			}
		}
	}
	return false
}

// try plays one schedule.
func (p *Plan) try(every time.Duration, pages int64, wish Wish) (Suggestion, bool) {
	s := Suggestion{Spec: specOf(every), Zone: wish.Zone, Every: every, Stagger: staggerOf(every, len(p.Lanes)), Pages: pages, Tried: *p}
	parsed, err := schedule.Parse(s.Spec, wish.Zone)
	if err != nil {
		panic(fmt.Sprintf("a spec of this package: %v", err))
	}
	s.Tried.Lanes = make([]Lane, len(p.Lanes))
	for i, l := range p.Lanes {
		l.Schedule, l.Offset, l.Pages = parsed, time.Duration(i)*s.Stagger, min(l.Pages, pages)
		s.Tried.Lanes[i] = l
	}
	fits := true
	s.Tried.Watch = func(r Run) bool {
		fits = !r.Lost()
		return fits
	}
	s.Report = s.Tried.Execute()
	s.Tried.Watch = nil
	return s, fits && len(s.Report.Over(wish.Share)) == 0
}

// specOf is the spec of ticks so far apart: a cron spec where one says it, else by real time.
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

// staggerOf spreads lanes over the interval, by full minutes where there are enough.
func staggerOf(every time.Duration, lanes int) time.Duration {
	step := every / time.Duration(max(lanes, 1))
	if step >= time.Minute {
		return step.Truncate(time.Minute)
	}
	return step.Truncate(time.Second)
}
