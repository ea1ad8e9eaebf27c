package forecast

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// A day of the replay: 8 regions of 4 pages every hour, and again every five minutes from 16:00 to
// 22:00, which is 3,072 units; besides them what no schedule announced, of one of these kinds. The
// forecast was made with them and with the days of an office in view, from the seeds 0 to 23.
var mixed = []string{"steady", "bursty", "runaway", "backfill"}

// unlooked are kinds of days that were not looked at while the forecast was made. Weekdays are
// quieter from Saturday to Sunday.
var unlooked = []string{"fourteen", "weekdays", "uploads", "wander"}

// demand is somebody who asks for units.
type demand struct {
	at    time.Time
	units int64
	job   string
	lane  int           // whose run it is, from 1; 0 for none
	aside int           // number of the reservation to draw on, from 1; 0 for none
	ttl   time.Duration // reserve the units
	gives bool          // settle the reservation
}

// log is what was spent, as running totals.
type log struct {
	at, before []int64
	total      int64
}

func (l *log) add(at, units int64) {
	l.at, l.before = append(l.at, at), append(l.before, l.total)
	l.total += units
}

// after is the units spent after t.
func (l *log) after(t int64) int64 {
	n, _ := slices.BinarySearch(l.at, t+1)
	if n == len(l.at) {
		return 0
	}
	return l.total - l.before[n]
}

// world is a month that happens.
type world struct {
	zone    *time.Location
	limits  []quota.Limit
	lanes   []share.Lane
	start   time.Time
	days    []string    // kinds
	level   float64     // of the rate that wanders, as a logarithm
	runs    []time.Time // of each day, when its job runs away
	demands []demand
	entries []quota.Spent
	log     log
	held    map[int]*quota.Reservation
	denied  []time.Time
	rule    share.Rule
	book    *share.Book
}

func newWorld(seed uint64, kinds []string, limits []quota.Limit) *world {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		panic(err)
	}
	w := &world{zone: zone, limits: limits, start: time.Date(2026, time.May, 1, 0, 0, 0, 0, zone), held: map[int]*quota.Reservation{}}
	for _, job := range [][2]string{{"trending", "0 * * * *"}, {"evening", "*/5 16-21 * * *"}} {
		s, err := schedule.Parse(job[1], zone)
		if err != nil {
			panic(err)
		}
		for i, region := range []string{"US", "GB", "DE", "FR", "IN", "BR", "AU", "CA"} {
			w.lanes = append(w.lanes, share.Lane{Lane: schedule.Lane{Job: job[0], Region: region, Schedule: s,
				Offset: time.Duration(i) * 5 * time.Second}, Pages: 4, Weight: 1})
		}
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for len(w.days) < 28 {
		w.days = append(w.days, kinds...)
	}
	r.Shuffle(len(w.days), func(i, j int) { w.days[i], w.days[j] = w.days[j], w.days[i] })
	w.runs = make([]time.Time, len(w.days))
	for i, kind := range w.days {
		w.plan(r, i, kind)
	}
	for i, l := range w.lanes {
		for t := range l.Ticks(w.start, w.day(len(w.days)).Add(-time.Second)) {
			w.demands = append(w.demands, demand{at: t.At, units: l.Pages, job: l.Job, lane: i + 1})
		}
	}
	w.rule = share.Rule{Lanes: w.lanes, Price: 1, Limits: limits, Reset: quota.Window{Calendar: "day", Zone: zone}}
	w.book = w.rule.Begin()
	slices.SortStableFunc(w.demands, func(a, b demand) int { return cmp.Compare(a.at.UnixMicro(), b.at.UnixMicro()) })
	return w
}

func (w *world) day(i int) time.Time {
	y, m, d := w.start.Date()
	return time.Date(y, m, d+i, 0, 0, 0, 0, w.zone)
}

// plan makes the unscheduled demands of a day.
func (w *world) plan(r *rand.Rand, i int, kind string) {
	day := w.day(i)
	between := func(lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }
	hours := func(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }
	pour := func(from, to, rate float64) { // charges of 1 to 19 units at random moments
		for h := from; ; {
			h += r.ExpFloat64() * 10 / rate
			if h >= to {
				return
			}
			w.demands = append(w.demands, demand{at: day.Add(hours(h)), units: 1 + r.Int64N(19), job: "manual"})
		}
	}
	switch kind {
	case "steady":
		pour(0, 24, between(120, 420))
	case "bursty":
		pour(0, 24, 60)
		for range 4 + r.IntN(7) {
			at, length := between(0, 23), between(0.2, 1)
			pour(at, at+length, between(300, 1200)/length)
		}
	case "runaway":
		pour(0, 24, between(60, 200))
		at := between(0, 21)
		w.runs[i] = day.Add(hours(at))
		pour(at, 24, between(800, 4000))
	case "office": // by the hour of the day
		rate := between(450, 850)
		for h, part := range []float64{.1, .1, .1, .1, .1, .1, .1, .2, .5, .9, 1, 1, .8, 1, 1, 1, .8, .5, .3, .2, .1, .1, .1, .1} {
			pour(float64(h), float64(h+1), rate*part)
		}
	case "fourteen": // a job that begins at 14:00 each day
		pour(0, 24, between(60, 140))
		at, length := between(13.95, 14.05), between(1, 3)
		pour(at, at+length, between(2500, 5500)/length)
	case "weekdays":
		rate := between(220, 330)
		if wd := day.Weekday(); wd == time.Saturday || wd == time.Sunday {
			rate = between(40, 100)
		}
		pour(0, 24, rate)
	case "uploads": // few and large
		pour(0, 24, 40)
		for h := r.ExpFloat64() * 2.0; h < 24; h += r.ExpFloat64() * 2.0 {
			w.demands = append(w.demands, demand{at: day.Add(hours(h)), units: 100 + r.Int64N(7)*100, job: "manual"})
		}
	case "wander": // up and down, with no regard to midnight
		for h := range 48 {
			w.level = 0.97*w.level + 0.16*r.NormFloat64()
			pour(float64(h)/2, float64(h+1)/2, 230*math.Exp(w.level))
		}
	case "backfill":
		pour(0, 24, between(60, 200))
		units, at, length := int64(between(2000, 5000)), between(1, 16), between(1, 6)
		w.demands = append(w.demands, demand{at: day.Add(hours(at)), units: units, ttl: hours(length + 1), aside: i + 1})
		const draw = 25
		n := int64(float64(units) * between(0.7, 1) / draw)
		for j := range n {
			at := at + 0.01 + (length-0.02)*float64(j)/float64(n)
			w.demands = append(w.demands, demand{at: day.Add(hours(at)), units: draw, job: "manual", aside: i + 1})
		}
		w.demands = append(w.demands, demand{at: day.Add(hours(at + length)), gives: true, aside: i + 1})
	}
}

// happen grants or denies, one after the other, and calls each at 25, 50 and 75 % of every day.
func (w *world) happen(each func(day int, percent int, b Bucket)) {
	next := 0
	for day := range w.days {
		for _, percent := range []int{25, 50, 75} {
			length := w.day(day + 1).Sub(w.day(day))
			now := w.day(day).Add(length * time.Duration(percent) / 100)
			for ; next < len(w.demands) && !w.demands[next].at.After(now); next++ {
				w.ask(w.demands[next])
			}
			each(day, percent, w.bucket(now))
		}
	}
	for ; next < len(w.demands); next++ {
		w.ask(w.demands[next])
	}
}

// left is what the limits leave.
func (w *world) left(now time.Time) int64 {
	left := int64(quota.MaxUnits)
	for _, l := range w.limits {
		after := now.Add(-l.Window.Length)
		if l.Window.IsCalendar() {
			start, _ := l.Window.Bounds(now)
			after = start.Add(-1)
		}
		left = min(left, l.Cap(false)-w.log.after(after.UnixMicro()))
	}
	for id, r := range w.held {
		if r.ExpiresAt.After(now) {
			left -= r.Left
		} else {
			delete(w.held, id)
		}
	}
	return left
}

func (w *world) ask(d demand) {
	left := w.left(d.at)
	r := w.held[d.aside]
	switch {
	case d.lane > 0:
		w.run(d)
	case d.gives:
		delete(w.held, d.aside)
	case d.ttl > 0 && d.units <= left:
		w.held[d.aside] = &quota.Reservation{Units: d.units, Left: d.units, CreatedAt: d.at, ExpiresAt: d.at.Add(d.ttl)}
	case d.aside > 0 && r != nil:
		d.units = min(d.units, r.Left)
		r.Left, r.Drawn = r.Left-d.units, r.Drawn+d.units
		w.write(d)
	case d.aside > 0: // the backfill got nothing set aside, and does not run
	case d.units <= left:
		w.write(d)
	default:
		w.denied = append(w.denied, d.at)
	}
}

func (w *world) write(d demand) {
	e := quota.Spent{At: d.at, Units: d.units, Labels: quota.Labels{quota.LabelJob: d.job}, Charges: 1}
	by := share.Others
	if d.lane > 0 {
		by = d.lane - 1
		e.Labels[quota.LabelRegion] = w.lanes[by].Region
	}
	w.book.Charge(by, e.At.UnixMicro(), e.Units)
	w.entries = append(w.entries, e)
	w.log.add(e.At.UnixMicro(), e.Units)
}

// run is a tick of a lane, which a daemon leaves out when its share says so.
func (w *world) run(d demand) {
	held := int64(0)
	for _, r := range w.held {
		if r.ExpiresAt.After(d.at) {
			held += r.Left
		}
	}
	left := func(limit int) int64 {
		l := w.limits[limit]
		after := d.at.Add(time.Second - l.Window.Length)
		if l.Window.IsCalendar() {
			start, _ := l.Window.Bounds(d.at)
			after = start.Add(-1)
		}
		return max(0, l.Cap(false)-w.log.after(after.UnixMicro())-held)
	}
	runs := w.book.Admit(d.lane-1, d.at.UnixMicro(), left).Run
	for n := d.units; runs && n > 0; n-- {
		if w.left(d.at) < 1 {
			w.denied = append(w.denied, d.at)
			return
		}
		d.units = 1
		w.write(d)
	}
}

// bucket is what the forecast is told.
func (w *world) bucket(now time.Time) Bucket {
	first, _ := slices.BinarySearchFunc(w.entries, now.Add(-Memory(w.limits)), func(e quota.Spent, t time.Time) int { return e.At.Compare(t) })
	b := Bucket{Name: "default", Price: 1, At: now, Limits: w.limits, Spent: slices.Clone(w.entries[first:]), Lanes: w.lanes}
	w.left(now)
	for _, r := range w.held {
		b.Reservations = append(b.Reservations, *r)
	}
	return b
}

// straight is what the straight line says: what was spent since the day began goes on at the same
// rate.
func straight(b Bucket) time.Time {
	dry := time.Time{}
	for _, l := range b.Limits {
		if !l.Window.IsCalendar() {
			continue
		}
		start, end := l.Window.Bounds(b.At)
		var spent float64
		for _, e := range b.Spent {
			if !e.At.Before(start) {
				spent += float64(e.Units)
			}
		}
		rest := float64(l.Cap(false)) - spent
		at := b.At.Add(time.Duration(rest / spent * float64(b.At.Sub(start))))
		if at.Before(end) && (dry.IsZero() || at.Before(dry)) {
			dry = at
		}
	}
	return dry
}

// score is how far off answers are.
type score struct {
	minutes []float64
	wrong   int
}

// add compares moments; zero is after the reset, which counts as the reset.
func (s *score) add(said, was, reset time.Time) {
	if said.IsZero() != was.IsZero() {
		s.wrong++
	}
	for _, t := range []*time.Time{&said, &was} {
		if t.IsZero() {
			*t = reset
		}
	}
	s.minutes = append(s.minutes, said.Sub(was).Abs().Minutes())
}

func (s *score) String() string {
	slices.Sort(s.minutes)
	var sum float64
	for _, m := range s.minutes {
		sum += m
	}
	n := len(s.minutes)
	return fmt.Sprintf("%5.0f %6.0f %6d %%", sum/float64(n), s.minutes[n*9/10], (100*s.wrong+n/2)/n)
}

// asked is a forecast that is to be held against what happens.
type asked struct {
	kind         string
	percent      int
	at           time.Time
	said         Forecast
	line, actual time.Time
}

// replay is a month with its forecasts.
func replay(seed uint64, kinds []string, limits []quota.Limit) []asked {
	w := newWorld(seed, kinds, limits)
	var all []asked
	w.happen(func(day, percent int, b Bucket) {
		if w.left(b.At) > 0 && day > 0 { // the first day has no past
			kind := w.days[day]
			if kind == "runaway" && w.runs[day].Before(b.At) {
				kind = "run away"
			}
			all = append(all, asked{kind: kind, percent: percent, at: b.At, said: Of(b), line: straight(b)})
		}
	})
	for i := range all {
		a := &all[i]
		n, _ := slices.BinarySearchFunc(w.denied, a.at, func(d, t time.Time) int {
			if !d.After(t) {
				return -1
			}
			return 1
		})
		if n < len(w.denied) && w.denied[n].Before(a.said.ResetAt) {
			a.actual = w.denied[n]
		}
	}
	return all
}
