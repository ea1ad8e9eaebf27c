package plan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"quotabudget/internal/ledger/memstore"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// Outcome is the outcome of a run.
type Outcome int

// Outcomes.
const (
	Complete Outcome = iota // all pages it wants
	Partial                 // some pages, then denied
	Denied                  // no page
	LeftOut                 // denied by the lane's share
)

// String returns the outcome's word.
func (o Outcome) String() string {
	return [...]string{"complete", "partial", "denied", "left_out"}[o]
}

// ShareName, as Run.Limit, means that a run was left out by its share.
const ShareName = "share"

// Run is one simulated tick.
type Run struct {
	schedule.Tick
	Lane    int // index in Plan.Lanes
	Outcome Outcome
	Pages   int64     // pages it gets
	Wanted  int64     // pages of the chart, without those that an earlier run got
	Limit   string    // what denied more: a limit's name, quota.PaceName, quota.Suspended or ShareName
	RetryAt time.Time // when the next page would fit; zero if not known
}

// Lost reports whether the run gets less than it wants.
func (r Run) Lost() bool { return r.Outcome != Complete }

// Missing returns the number of pages that the run wants but does not get.
func (r Run) Missing() int64 { return r.Wanted - r.Pages }

// freshness is the maximum age of an interrupted chart that a run resumes, as in package ingest.
const freshness = 15 * time.Minute

// Play plays the runs of a plan one after another, with other charges in between. Times are Unix
// microseconds and do not go back.
type Play struct {
	*Plan
	buckets []*bucket
	lanes   []lane
	book    *share.Book
	shared  *bucket // the bucket that lanes share; nil for none

	from  time.Time // start of the next day to play
	queue []tick    // coming ticks of the day
	turns []tick    // ticks of one moment, in the order of their runs
}

// tick is a moment at which a lane runs.
type tick struct {
	at   int64
	lane int
}

type lane struct {
	buckets []*bucket        // that a page is charged to
	costs   []quota.Cost     // of a page, by bucket
	limits  [2][]quota.Limit // of these buckets; the second without paces
	took    []took           // units that runs take instead of the costs, if learned
	served  int64            // when it last got all it wanted; MinInt64 for never
	pages   int64            // of the interrupted chart; 0 for none
	begun   int64            // when its first page arrived
	spent   int64            // units of the shared bucket in the upstream's day
}

// took holds the units that earlier runs of a lane took from a bucket. Each coming run takes the
// units that keep the sum closest to the mean.
type took struct {
	*bucket
	units, runs, remainder int64
}

func (t *took) next() int64 {
	sum := t.remainder + t.units
	t.remainder = sum % t.runs
	return sum / t.runs
}

// Play returns a play at the plan's start.
func (p *Plan) Play() *Play {
	g := &Play{Plan: p, from: p.From}
	for _, name := range p.Buckets() {
		g.buckets = append(g.buckets, newBucket(p, name))
	}
	for i := range p.Lanes {
		g.lanes = append(g.lanes, g.lane(&p.Lanes[i]))
	}
	rule := share.Rule{Lanes: p.Lanes, Price: p.Price, Reset: p.Reset}
	if g.shared = g.bucket(quota.DefaultBucket); g.shared != nil {
		rule.Limits = g.shared.limits
	}
	g.book = rule.Begin()
	g.recall(&rule)
	return g
}

func (g *Play) bucket(name string) *bucket {
	for _, b := range g.buckets {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// lane returns a lane at the start of the play.
func (g *Play) lane(l *share.Lane) lane {
	s := lane{served: math.MinInt64}
	price, units := quota.UnitsOf(l.PriceOr(g.Price)), quota.UnitsOf(l.LearnedCosts)
	for _, b := range g.buckets {
		if l.Runs > 0 {
			s.took = append(s.took, took{bucket: b, units: units[b.Name], runs: l.Runs})
		}
		if price[b.Name] > 0 {
			s.buckets = append(s.buckets, b)
			s.costs = append(s.costs, quota.Cost{Bucket: b.Name, Units: price[b.Name]})
			paces := b.paces
			if l.OwnPaces != nil {
				paces = limitsOf(b.Name, *l.OwnPaces)
			}
			s.limits[0] = append(append(s.limits[0], b.limits...), paces...)
			s.limits[1] = append(s.limits[1], b.limits...)
		}
	}
	return s
}

// recall records the earlier charges to the shared bucket by lane.
func (g *Play) recall(rule *share.Rule) {
	start, _ := g.Reset.Bounds(g.From)
	for _, standing := range g.Before {
		if standing.Name != quota.DefaultBucket {
			continue
		}
		for _, e := range standing.Spent {
			lane := rule.LaneOf(e.Labels)
			g.book.Charge(g.payer(lane), e.At.UnixMicro(), e.Units)
			if lane == share.Others {
				continue
			}
			g.lanes[lane].served = e.At.UnixMicro()
			if !e.At.Before(start) {
				g.lanes[lane].spent += e.Units
			}
		}
	}
}

// payer returns the lane as the shares identify it.
func (g *Play) payer(lane int) int {
	if lane != share.Others && g.Lanes[lane].External {
		return share.Others
	}
	return lane
}

// Next returns the time of the next run; false if there is none.
func (g *Play) Next() (at int64, ok bool) {
	if len(g.turns) > 0 {
		return g.turns[0].at, true
	}
	for len(g.queue) == 0 {
		if !g.from.Before(g.To) {
			return 0, false
		}
		g.nextDay()
	}
	return g.queue[0].at, true
}

// nextDay lists the ticks of the next upstream day, by time and then lane.
func (g *Play) nextDay() {
	start, end := g.Reset.Bounds(g.from)
	if end.After(g.To) {
		end = g.To
	}
	g.queue = g.queue[:0]
	for i, l := range g.Lanes {
		for t := range l.Ticks(g.from.Add(-time.Nanosecond), end.Add(-time.Nanosecond)) {
			g.queue = append(g.queue, tick{t.At.UnixMicro(), i})
		}
		if !start.Before(g.From) {
			g.lanes[i].spent = 0
		}
	}
	slices.SortFunc(g.queue, func(a, b tick) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.lane, b.lane))
	})
	g.from = end
}

// take takes the next tick. At one moment, the lane served longest ago goes first.
func (g *Play) take() tick {
	if len(g.turns) == 0 {
		n := 1
		for n < len(g.queue) && g.queue[n].at == g.queue[0].at {
			n++
		}
		g.turns, g.queue = append(g.turns, g.queue[:n]...), g.queue[n:]
		slices.SortStableFunc(g.turns, func(a, b tick) int {
			return cmp.Compare(g.lanes[a.lane].served, g.lanes[b.lane].served)
		})
	}
	t := g.turns[0]
	g.turns = g.turns[:copy(g.turns, g.turns[1:])]
	return t
}

// Run plays the next run. Next reports whether there is one.
func (g *Play) Run() Run {
	t := g.take()
	l, s, at := &g.Lanes[t.lane], &g.lanes[t.lane], moment(t.at)
	run := Run{Lane: t.lane, Wanted: l.Pages - s.resumed(t.at), Tick: l.Tick(at.Add(-l.Offset))}
	if g.shared != nil && !g.book.Admit(t.lane, t.at, g.left(t.at)).Run {
		run.Outcome, run.Limit = LeftOut, ShareName
	} else if units := g.read(&run, t.at); units > 0 {
		s.spent += units
		g.book.Charge(g.payer(t.lane), t.at, units)
	}
	s.keep(&run, t.at)
	return run
}

// left returns what the limits of the shared bucket leave for scheduled charges soon.
func (g *Play) left(at int64) func(limit int) int64 {
	return func(limit int) int64 {
		l, then := g.shared.limits[limit], at
		if l.Window.IsSliding() {
			then += share.Soon.Microseconds()
		}
		return max(0, l.Cap(false)-g.shared.Taken(l, then))
	}
}

// resumed returns how many pages the lane's chart has when it runs at a moment.
func (s *lane) resumed(at int64) int64 {
	if at-s.begun > freshness.Microseconds() {
		s.pages = 0
	}
	return s.pages
}

// keep records the pages that a run got of the chart.
func (s *lane) keep(run *Run, at int64) {
	if s.pages == 0 {
		s.begun = at
	}
	s.pages += run.Pages
	if run.Outcome == Complete {
		s.served, s.pages = at, 0
	}
}

// read charges all pages of a run at once, or as many as fit one by one. It returns the units
// taken from the shared bucket.
func (g *Play) read(run *Run, at int64) (shared int64) {
	s := &g.lanes[run.Lane]
	limits := s.limits[0]
	if s.spent < g.Lanes[run.Lane].Floor {
		limits = s.limits[1]
	}
	if run.Wanted < 1 {
		return 0
	}
	d, err := s.charge(at, run.Wanted, limits)
	if d.Allowed {
		run.Pages = run.Wanted
		return s.book(at, run.Pages)
	}
	for run.Wanted > 1 && run.Pages < run.Wanted {
		if d, err = s.charge(at, 1, limits); !d.Allowed {
			break
		}
		run.Pages++
		shared += s.book(at, 1)
	}
	switch {
	case run.Pages == run.Wanted: // units have come free between two pages
		return shared
	case run.Pages > 0:
		run.Outcome = Partial
	default:
		run.Outcome = Denied
	}
	switch run.Limit = d.Limit; {
	case err == nil:
		run.RetryAt = s.whenPaced(at, limits, d.RetryAt)
	case !d.Never:
		run.Limit = err.Error()
	}
	return shared
}

// charge decides whether the costs of pages fit. If so it charges them, unless the lane takes other
// units than its costs.
func (s *lane) charge(at, pages int64, limits []quota.Limit) (quota.Decision, error) {
	c := quota.Charge{Limits: limits, DryRun: len(s.took) > 0, Costs: slices.Clone(s.costs)}
	for i := range c.Costs {
		c.Costs[i].Units *= pages
	}
	buckets := make([]*memstore.Bucket, len(s.buckets))
	for i, b := range s.buckets {
		buckets[i] = b.Bucket
	}
	return memstore.Charge(at, buckets, c)
}

// book charges the units that pages take, if they differ from the costs. It returns the units taken
// from the shared bucket.
func (s *lane) book(at, pages int64) (shared int64) {
	if len(s.took) == 0 {
		return pages * quota.UnitsOf(s.costs)[quota.DefaultBucket]
	}
	for i := range s.took {
		t, units := &s.took[i], int64(0)
		for range pages {
			units += t.next()
		}
		t.take(at, units)
		if t.Name == quota.DefaultBucket {
			shared = units
		}
	}
	return shared
}

// whenPaced moves a denial's retry time to the time when the paces allow a page, as a budget does.
func (s *lane) whenPaced(at int64, limits []quota.Limit, retry time.Time) time.Time {
	units := quota.UnitsOf(s.costs)
	for _, b := range s.buckets {
		for _, l := range limits {
			if l.Pace == nil || l.Bucket != b.Name {
				continue
			}
			used, holds := b.Taken(l, at), b.expiring(at)
			for _, h := range holds {
				used -= h.Units
			}
			paced := l.PacedAt(used, holds, units[b.Name], moment(at), retry)
			if paced.After(retry) {
				retry = paced.UTC()
			}
		}
	}
	return retry
}

func moment(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
