package sim

import (
	"cmp"
	"math"
	"slices"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// Outcome is what a run comes to.
type Outcome int

// The outcomes.
const (
	Complete Outcome = iota // all pages that it wants
	Partial                 // some pages, then denied
	Denied                  // no page
	LeftOut                 // its share said no
)

// String is the word for it.
func (o Outcome) String() string {
	return [...]string{"complete", "partial", "denied", "left_out"}[o]
}

// ShareName, as Run.Limit, says that a run is left out for its share.
const ShareName = "share"

// Run is one tick as it was played. Times are Unix µs.
type Run struct {
	Lane    int
	At      int64
	Outcome Outcome
	Pages   int64  // that it gets
	Wanted  int64  // pages: those of the chart, less those that an earlier run has got of it
	Limit   string // why no more: a limit's name, quota.PaceName, quota.Suspended or ShareName
	RetryAt int64  // when the next page would fit; 0 when it is not known
	shared  int64  // units of the bucket that is shared, that it takes
}

// Lost reports whether the run gets less than it wants.
func (r Run) Lost() bool { return r.Outcome != Complete }

// Tick is the tick of a run.
func (c *Course) Tick(r Run) schedule.Tick {
	l, at := &c.Lanes[r.Lane], moment(r.At)
	return schedule.Tick{Job: l.Job, Region: l.Region, Scheduled: at.Add(-l.Offset), At: at}
}

// Play is one play of a course: a run after the other, and charges of others in between. A course
// has one play at a time.
type Play struct {
	*Course
	book    share.Book
	buckets []bucket
	lanes   []progress

	day   int    // of Course.days
	queue []tick // of the day, to come
	room  []tick
	turns []tick // of one moment
	turn  int    // the next of them

	shared *bucket               // whose units are shared; nil for none
	left   func(limit int) int64 // of Course.rule
}

// progress is how a lane stands.
type progress struct {
	served int64 // when it last got all that it wanted; MinInt64 for never
	pages  int64 // of the chart that was cut off; 0 for none
	begun  int64 // when its first page came
	spent  int64 // units of the upstream's day, of the bucket that is shared
}

// Play begins. The next call begins again, and the play before has ended.
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

// share finds the windows of the limits that are shared.
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

// Next is when the next run is; false when there is none.
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

// Skip leaves aside the next runs before a moment that are surely left out.
func (p *Play) Skip(until int64) {
	for p.turn == len(p.turns) && len(p.queue) > 0 {
		at := p.begin() + p.queue[0].at()
		if at >= until || !p.book.Idle(p.queue[0].lane(), at) {
			return
		}
		p.queue = p.queue[1:]
	}
}

// begin is when the part of the day begins that is played.
func (p *Play) begin() int64 { return p.days[p.day].From.UnixMicro() }

// take takes the next tick. Of one moment, the lane that was served longest ago goes first.
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

// Run plays the next run. Next says whether there is one.
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

// resumed is how many pages of the chart are there when the lane runs at a moment.
func (g *progress) resumed(at int64) int64 {
	if at-g.begun > Fresh.Microseconds() {
		g.pages = 0
	}
	return g.pages
}

// keep notes what a run has got of the chart.
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

// readAll charges all pages at once, where they fit and nothing changes between the first and the
// last.
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

// next moves the buckets that a lane takes from to a moment, or to just after their newest entry,
// as a ledger stamps.
func (p *Play) next(at int64, lane int) int64 {
	for i := 0; i < len(p.buckets); {
		if !p.buckets[i].takes(lane) {
			i++
			continue
		}
		if n := p.buckets[i].next(at); n > at {
			at, i = n, 0 // all are decided at one time
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

// charge returns how many units it took of the bucket that is shared.
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

// deny says why, as a budget does: the limit that makes the page wait longest, the paces included.
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

// Room is how many units the first bucket has left at a moment, no earlier than any before,
// suspended or not, throttles and paces left aside: less than 0 where people are in the headroom.
func (p *Play) Room(at int64) int64 {
	room, _ := p.tightest(at)
	return room
}

// Tightest is the name of the limit that leaves least of it.
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

// Frees is when a unit of it comes free, at a moment or later, if nobody charges anything;
// quota.Never if none does.
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

// Charge charges the first bucket for somebody who is none of the lanes, if the limits allow it.
func (p *Play) Charge(at, units int64) bool {
	if units > p.Room(at) {
		return false
	}
	p.Take(at, units)
	return true
}

// Take charges whatever the limits say.
func (p *Play) Take(at, units int64) {
	b := &p.buckets[0]
	b.charge(b.next(at), 1, units)
	if b == p.shared {
		p.book.Charge(share.Others, at, units)
	}
}

// Used is what is used and held in each of Windows at a moment, no earlier than any before.
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

// Peaks are those of each of Windows since they were last cleared.
func (p *Play) Peaks() (all []Peak) {
	for i := range p.buckets {
		for j := range p.buckets[i].windows {
			all = append(all, p.buckets[i].windows[j].peak)
		}
	}
	return all
}

// ClearPeaks makes peaks begin with what is used at a moment.
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
