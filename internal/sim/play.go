package sim

import (
	"cmp"
	"math"
	"slices"

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
	LeftOut                 // its share denied it
)

// String returns the outcome's word.
func (o Outcome) String() string {
	return [...]string{"complete", "partial", "denied", "left_out"}[o]
}

// ShareName, as Run.Limit, means that a run was left out by its share.
const ShareName = "share"

// Run is one simulated tick. Times are Unix µs.
type Run struct {
	Lane    int
	At      int64
	Outcome Outcome
	Pages   int64  // pages it gets
	Wanted  int64  // pages of the chart, less those an earlier run got
	Limit   string // what denied more: a limit's name, quota.PaceName, quota.Suspended or ShareName
	RetryAt int64  // when the next page would fit; 0 if not known
	shared  int64  // units it takes from the shared bucket
}

// Lost reports whether the run gets less than it wants.
func (r Run) Lost() bool { return r.Outcome != Complete }

// Tick returns the tick of a run.
func (c *Course) Tick(r Run) schedule.Tick {
	l, at := &c.Lanes[r.Lane], moment(r.At)
	return schedule.Tick{Job: l.Job, Region: l.Region, Scheduled: at.Add(-l.Offset), At: at}
}

// Play is one simulation of a course: one run after another, with other charges in between. A
// course has one play at a time.
type Play struct {
	*Course
	book    share.Book
	buckets []bucket
	lanes   []progress

	day   int    // index in Course.days
	queue []tick // coming ticks of the day
	room  []tick
	turns []tick // ticks of one moment
	turn  int    // index of the next one

	shared *bucket               // the shared bucket; nil for none
	left   func(limit int) int64 // for Course.rule
}

// progress is the state of a lane.
type progress struct {
	served int64 // when it last got all it wanted; MinInt64 for never
	pages  int64 // of the interrupted chart; 0 for none
	begun  int64 // when its first page arrived
	spent  int64 // units of the shared bucket in the upstream's day
}

// Play begins a simulation. It ends the previous one.
func (c *Course) Play() *Play {
	p := &c.play
	p.Course, p.day, p.queue, p.turns, p.turn = c, -1, nil, p.turns[:0], 0
	p.book.CopyOf(c.book)
	p.lanes = append(p.lanes[:0], c.lanes...)
	if p.buckets == nil {
		p.buckets = make([]bucket, len(c.buckets))
	}
	for i := range p.buckets {
		p.buckets[i].copyOf(&c.buckets[i])
	}
	if p.left == nil {
		p.share()
	}
	return p
}

// share finds the windows of the shared limits.
func (p *Play) share() {
	var windows []*window
	for i := range p.buckets {
		if b := &p.buckets[i]; b.name == quota.DefaultBucket {
			p.shared = b
			for j := range b.windows {
				if b.windows[j].limit.Pace == nil {
					windows = append(windows, &b.windows[j])
				}
			}
		}
	}
	p.left = func(limit int) int64 {
		w := windows[limit]
		return max(0, w.most-w.usedSoon(&p.shared.log)-p.shared.held)
	}
}

// Next returns the time of the next run; false if there is none.
func (p *Play) Next() (at int64, ok bool) {
	if p.turn < len(p.turns) {
		return p.begin() + p.turns[p.turn].at(), true
	}
	for len(p.queue) == 0 {
		if p.day++; p.day >= len(p.days) {
			return 0, false
		}
		p.queue, p.room = p.ticks.of(p.day, p.room)
		for i := range p.lanes {
			if p.day > 0 {
				p.lanes[i].spent = 0
			}
		}
	}
	return p.begin() + p.queue[0].at(), true
}

// Skip drops the next runs before a moment that are certain to be left out.
func (p *Play) Skip(until int64) {
	for p.turn == len(p.turns) && len(p.queue) > 0 {
		at := p.begin() + p.queue[0].at()
		if at >= until || !p.book.Idle(p.queue[0].lane(), at) {
			return
		}
		p.queue = p.queue[1:]
	}
}

// begin returns the start of the simulated part of the day.
func (p *Play) begin() int64 { return p.days[p.day].From.UnixMicro() }

// take takes the next tick. At one moment, the lane served longest ago goes first.
func (p *Play) take() tick {
	if p.turn == len(p.turns) {
		n := 1
		for n < len(p.queue) && p.queue[n].at() == p.queue[0].at() {
			n++
		}
		p.turns, p.turn, p.queue = append(p.turns[:0], p.queue[:n]...), 0, p.queue[n:]
		if n > 1 {
			slices.SortStableFunc(p.turns, func(a, b tick) int {
				return cmp.Compare(p.lanes[a.lane()].served, p.lanes[b.lane()].served)
			})
		}
	}
	p.turn++
	return p.turns[p.turn-1]
}

// Run simulates the next run. Next reports whether there is one.
func (p *Play) Run() Run {
	t := p.take()
	lane, at := t.lane(), p.begin()+t.at()
	l, g := &p.Lanes[lane], &p.lanes[lane]
	run := Run{Lane: lane, At: at, Wanted: l.Pages - g.resumed(at)}
	if p.admits(lane, at) {
		p.read(&run, charger{lane, l.Own != nil, g.spent < l.Floor})
	} else {
		run.Outcome, run.Limit = LeftOut, ShareName
	}
	if run.shared > 0 {
		g.spent += run.shared
		p.book.Charge(p.payer(lane), at, run.shared)
	}
	g.keep(run)
	return run
}

// admits reports whether the lane's share lets it run.
func (p *Play) admits(lane int, at int64) bool {
	if p.shared == nil {
		return true
	}
	if p.book.Idle(lane, at) {
		return false
	}
	p.shared.move(at)
	return p.book.Admit(lane, at, p.left).Run
}

// resumed returns how many pages the lane's chart has when it runs at a moment.
func (g *progress) resumed(at int64) int64 {
	if at-g.begun > Fresh.Microseconds() {
		g.pages = 0
	}
	return g.pages
}

// keep records the pages that a run got of the chart.
func (g *progress) keep(run Run) {
	if g.pages == 0 {
		g.begun = run.At
	}
	g.pages += run.Pages
	if run.Outcome == Complete {
		g.served, g.pages = run.At, 0
	}
}

// read charges page after page until one is denied.
func (p *Play) read(run *Run, by charger) {
	if p.readAll(run, by) {
		return
	}
	for ; run.Pages < run.Wanted; run.Pages++ {
		n := p.next(run.At, by.lane)
		if !p.fit(n, 1, by) {
			p.deny(n, run, by)
			return
		}
		run.shared += p.charge(n, 1, by.lane)
	}
}

// readAll charges all pages at once, if they fit and nothing changes during the run.
func (p *Play) readAll(run *Run, by charger) bool {
	n := p.next(run.At, by.lane)
	if run.Wanted < 1 || !p.fit(n, run.Wanted, by) {
		return false
	}
	for i := range p.buckets {
		if !p.buckets[i].still(n + run.Wanted - 1) {
			return false
		}
	}
	run.shared = p.charge(n, run.Wanted, by.lane)
	run.Pages = run.Wanted
	return true
}

// next moves the buckets that a lane uses to a moment, or to just after their newest entry, as a
// ledger stamps.
func (p *Play) next(at int64, lane int) int64 {
	for i := 0; i < len(p.buckets); {
		if !p.buckets[i].takes(lane) {
			i++
			continue
		}
		if n := p.buckets[i].next(at); n > at {
			at, i = n, 0 // all must decide at the same time
		} else {
			i++
		}
	}
	return at
}

func (p *Play) fit(n, pages int64, by charger) bool {
	for i := range p.buckets {
		if !p.buckets[i].fits(n, pages, by) {
			return false
		}
	}
	return true
}

// charge returns the units taken from the shared bucket.
func (p *Play) charge(n, pages int64, lane int) (shared int64) {
	for i := range p.buckets {
		b := &p.buckets[i]
		if !b.takes(lane) {
			continue
		}
		if units := b.chargeLane(n, pages, lane); b == p.shared {
			shared = units
		}
	}
	return shared
}

// deny records why, as a budget does: the limit that makes the page wait longest, including
// paces.
func (p *Play) deny(n int64, run *Run, by charger) {
	run.Outcome = Denied
	if run.Pages > 0 {
		run.Outcome = Partial
	}
	v := verdict{at: n}
	for i := range p.buckets {
		p.buckets[i].judge(n, by, &v)
	}
	for i := range p.buckets {
		if v.at < quota.Never && !by.unpaced {
			p.buckets[i].judgePaces(n, by, &v)
		}
	}
	run.Limit = v.limit
	if v.at < quota.Never {
		run.RetryAt = v.at
	}
}

// Room returns the units the first bucket has left at a moment, which never goes back. It ignores
// suspension, throttles and paces, and is negative if people use the headroom.
func (p *Play) Room(at int64) int64 {
	room, _ := p.tightest(at)
	return room
}

// Tightest returns the name of the limit that leaves the least of the first bucket.
func (p *Play) Tightest(at int64) string {
	_, w := p.tightest(at)
	if w == nil {
		return ""
	}
	return w.limit.Name()
}

func (p *Play) tightest(at int64) (room int64, which *window) {
	b := &p.buckets[0]
	b.move(at)
	room = math.MaxInt64 / 4
	for i := range b.windows {
		if w := &b.windows[i]; !w.brake && w.most-w.used-b.held < room {
			room, which = w.most-w.used-b.held, w
		}
	}
	return room, which
}

// Frees returns when a unit of the first bucket comes free, at a moment or later, if nothing is
// charged; quota.Never if none does.
func (p *Play) Frees(at int64) (free int64) {
	b := &p.buckets[0]
	b.move(at)
	for i := range b.windows {
		if w := &b.windows[i]; !w.brake {
			free = max(free, w.standing(b, at).Fits(1, w.most))
		}
	}
	return free
}

// Charge charges the first bucket outside of any lane, if the limits allow it.
func (p *Play) Charge(at, units int64) bool {
	if units > p.Room(at) {
		return false
	}
	p.Take(at, units)
	return true
}

// Take charges the first bucket regardless of limits.
func (p *Play) Take(at, units int64) {
	b := &p.buckets[0]
	b.charge(b.next(at), 1, units)
	if b == p.shared {
		p.book.Charge(share.Others, at, units)
	}
}

// Used returns the units used and held in each of Windows at a moment, which never goes back.
func (p *Play) Used(at int64, into []int64) []int64 {
	into = into[:0]
	for i := range p.buckets {
		b := &p.buckets[i]
		b.move(at)
		for j := range b.windows {
			into = append(into, b.windows[j].used+b.held)
		}
	}
	return into
}

// Peaks returns the peak of each of Windows since they were last cleared.
func (p *Play) Peaks() (all []Peak) {
	for i := range p.buckets {
		for j := range p.buckets[i].windows {
			all = append(all, p.buckets[i].windows[j].peak)
		}
	}
	return all
}

// ClearPeaks resets the peaks to the use at a moment.
func (p *Play) ClearPeaks(at int64) {
	for i := range p.buckets {
		b := &p.buckets[i]
		for j := range b.windows {
			b.windows[j].peak = NoPeak()
		}
		b.move(at)
		b.see(at)
	}
}
