package plan

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// kinds are the replayed kinds of days. A day has 32 units scheduled every hour and 64 every ten
// minutes from 16:00 to 22:00, 3,072 in all, plus unscheduled spending. The forecast was
// developed with the first two.
var kinds = [][]string{
	{"steady", "bursty", "runaway", "backfill"}, // mixed
	{"office"}, {"fourteen"}, {"weekdays"}, {"uploads"}, {"wander"},
}

// demand is an unscheduled request for units.
type demand struct {
	at    time.Time
	units int64
	aside time.Duration // how long the units are held
	draw  bool          // draw on the reservation
}

// world simulates a month.
type world struct {
	zone    *time.Location
	limits  []quota.Limit
	lanes   []share.Lane
	start   time.Time
	days    []string // kinds
	level   float64  // of the rate that wanders, as a logarithm
	demands []demand
	play    *Play
	entries []quota.Spent
	held    quota.Reservation
	denied  []time.Time
}

const perPage = 32

func newWorld(t testing.TB, seed uint64, kinds []string, limits []quota.Limit) *world {
	zone := limits[0].Window.Zone
	w := &world{zone: zone, limits: limits, start: time.Date(2026, time.May, 1, 0, 0, 0, 0, zone)}
	for i, spec := range []string{"0 * * * *", "*/10 16-21 * * *"} {
		l := lanesOf(t, "CRON_TZ="+zone.String()+" "+spec, []string{"US", "BR"}[i])[0]
		l.Pages, l.Weight = int64(1+i), 1
		w.lanes = append(w.lanes, l)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for len(w.days) < 28 {
		w.days = append(w.days, kinds...)
	}
	r.Shuffle(len(w.days), func(i, j int) { w.days[i], w.days[j] = w.days[j], w.days[i] })
	for i, kind := range w.days {
		w.demand(r, i, kind)
	}
	slices.SortStableFunc(w.demands, func(a, b demand) int { return a.at.Compare(b.at) })
	p := Plan{Lanes: w.lanes, Price: []quota.Cost{{Bucket: "default", Units: perPage}},
		Limits: limits, Reset: limits[0].Window, From: w.start, To: w.day(len(w.days))}
	w.play = p.Play()
	return w
}

func (w *world) day(i int) time.Time {
	y, m, d := w.start.Date()
	return time.Date(y, m, d+i, 0, 0, 0, 0, w.zone)
}

// demand adds the unscheduled demands of a day.
func (w *world) demand(r *rand.Rand, i int, kind string) {
	day := w.day(i)
	between := func(lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }
	hours := func(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }
	pour := func(from, to, rate float64) { // charges of 1 to 19 units at random moments
		for h := from; ; {
			h += r.ExpFloat64() * 10 / rate
			if h >= to {
				return
			}
			w.demands = append(w.demands, demand{at: day.Add(hours(h)), units: 1 + r.Int64N(19)})
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
		pour(at, 24, between(800, 4000))
	case "office": // by the hour of the day
		rate := between(450, 850)
		for h, part := range []float64{.1, .1, .1, .1, .1, .1, .1, .2, .5, .9, 1, 1, .8, 1, 1, 1,
			.8, .5, .3, .2, .1, .1, .1, .1} {
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
			w.demands = append(w.demands,
				demand{at: day.Add(hours(h)), units: 100 + r.Int64N(7)*100})
		}
	case "wander": // up and down, regardless of midnight
		for h := range 48 {
			w.level = 0.97*w.level + 0.16*r.NormFloat64()
			pour(float64(h)/2, float64(h+1)/2, 230*math.Exp(w.level))
		}
	case "backfill":
		pour(0, 24, between(60, 200))
		units, at, length := between(2000, 5000), between(1, 16), between(1, 6)
		const draw = 25
		n := int64(units * between(0.7, 1) / draw)
		w.demands = append(w.demands, demand{at: day.Add(hours(at)), units: n * draw,
			aside: hours(length + 1)})
		for j := range n {
			at := at + 0.01 + (length-0.02)*float64(j)/float64(n)
			w.demands = append(w.demands, demand{at: day.Add(hours(at)), units: draw, draw: true})
		}
	}
}

// happen calls each at 25, 50 and 75 % of each day.
func (w *world) happen(each func(day, percent int, b Bucket)) {
	for day := range w.days {
		for _, percent := range []int{25, 50, 75} {
			length := w.day(day + 1).Sub(w.day(day))
			now := w.day(day).Add(length * time.Duration(percent) / 100)
			w.until(now)
			each(day, percent, w.bucket(now))
		}
	}
	w.until(w.day(len(w.days)))
}

// until simulates scheduled and unscheduled spending up to a moment.
func (w *world) until(now time.Time) {
	for {
		micros, scheduled := w.play.Next()
		at := time.UnixMicro(micros)
		switch {
		case len(w.demands) > 0 && (!scheduled || w.demands[0].at.Before(at)):
			if w.demands[0].at.After(now) {
				return
			}
			w.ask(w.demands[0])
			w.demands = w.demands[1:]
		case scheduled && !at.After(now):
			r := w.play.Run()
			if r.Pages > 0 {
				l := w.lanes[r.Lane]
				w.entries = append(w.entries,
					quota.Spent{At: at, Units: r.Pages * perPage, Charges: r.Pages,
						Labels: quota.Labels{quota.LabelJob: l.Job, quota.LabelRegion: l.Region}})
			}
			if r.Lost() && r.Limit != ShareName {
				w.denied = append(w.denied, at)
			}
		default:
			return
		}
	}
}

// room returns the units left at a moment.
func (w *world) room(at time.Time) int64 {
	room, _ := w.play.Room(at.UnixMicro())
	return room
}

// ask grants or denies a demand.
func (w *world) ask(d demand) {
	switch {
	case d.draw && d.units > w.held.Left: // nothing was held for it
		return
	case d.draw:
		w.held.Left, w.held.Drawn = w.held.Left-d.units, w.held.Drawn+d.units
	case d.units > w.room(d.at):
		if d.aside == 0 {
			w.denied = append(w.denied, d.at)
		}
		return
	default:
		w.play.Take(d.at.UnixMicro(), d.units)
	}
	if d.aside > 0 {
		w.held = quota.Reservation{Units: d.units, Left: d.units, CreatedAt: d.at,
			ExpiresAt: d.at.Add(d.aside)}
		return
	}
	w.entries = append(w.entries, quota.Spent{At: d.at, Units: d.units, Charges: 1,
		Labels: quota.Labels{quota.LabelJob: "manual"}})
}

// bucket returns the input of a forecast.
func (w *world) bucket(now time.Time) Bucket {
	from := now.Add(-Memory(w.limits))
	first, _ := slices.BinarySearchFunc(w.entries, from,
		func(e quota.Spent, t time.Time) int { return e.At.Compare(t) })
	b := Bucket{Standing: Standing{Name: "default", Spent: slices.Clone(w.entries[first:])},
		Price: perPage, At: now, Limits: w.limits, Lanes: w.lanes}
	if w.held.ExpiresAt.After(now) {
		b.Reservations = []quota.Reservation{w.held}
	}
	return b
}

// prediction is a forecast to compare with what happens.
type prediction struct {
	percent int
	said    Forecast
	actual  time.Time
}

// replay simulates a month with its forecasts.
func replay(t testing.TB, seed uint64, kinds []string, limits []quota.Limit) (all []prediction) {
	w := newWorld(t, seed, kinds, limits)
	w.happen(func(day, percent int, b Bucket) {
		if day > 0 && w.room(b.At) > 0 { // the first day has no past
			all = append(all, prediction{percent: percent, said: ForecastOf(b)})
		}
	})
	for i := range all {
		a := &all[i]
		n, _ := slices.BinarySearchFunc(w.denied, a.said.At, func(d, t time.Time) int {
			return cmp.Or(d.Compare(t), -1)
		})
		if n < len(w.denied) && w.denied[n].Before(a.said.ResetAt) {
			a.actual = w.denied[n]
		}
	}
	return all
}

// off returns the error in minutes; never counts as the reset.
func (a prediction) off(said time.Time) float64 {
	or := func(t time.Time) time.Time {
		if t.IsZero() {
			return a.said.ResetAt
		}
		return t
	}
	return or(said).Sub(or(a.actual)).Abs().Minutes()
}

// covered returns whether the outcome lies within the interval: 1 or 0. If neither the bucket nor
// the forecast with the low load ran dry, it returns the fraction of such days that an eight-in-ten
// interval contains.
func (a prediction) covered() float64 {
	f := a.said
	switch {
	case a.actual.IsZero() && f.Earliest.IsZero():
		return 0.8
	case a.actual.IsZero() && f.Latest.IsZero():
		return 0.75
	case a.actual.IsZero(), f.Earliest.IsZero(), a.actual.Before(f.Earliest.Add(-time.Minute)):
		return 0
	case !f.Latest.IsZero() && a.actual.After(f.Latest.Add(time.Minute)):
		return 0
	}
	return 1
}

// coverage returns the mean of covered.
func coverage(all []prediction) (sum float64) {
	for _, a := range all {
		sum += a.covered() / float64(len(all))
	}
	return sum
}

// expectCoverage makes the predictions of each kind in parallel. Over all kinds, the interval must
// hold in 70 to 90 % of the cases; for each kind, in 80 %, give or take off.
func expectCoverage(t *testing.T, off float64, kinds map[string]func() []prediction) {
	var all []prediction
	var lock sync.Mutex
	t.Run("each", func(t *testing.T) {
		for name, predict := range kinds {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				predictions, minutes := predict(), 0.0
				for _, a := range predictions {
					minutes += a.off(a.said.DryAt) / float64(len(predictions))
				}
				part := coverage(predictions)
				t.Logf("%d forecasts, %.1f hours off, the interval holds in %.0f %%",
					len(predictions), minutes/60, 100*part)
				if math.Abs(part-0.8) > off {
					t.Errorf("the interval holds in %.0f %% of this kind", 100*part)
				}
				lock.Lock()
				defer lock.Unlock()
				all = append(all, predictions...)
			})
		}
	})
	if part := coverage(all); math.Abs(part-0.8) > 0.1 {
		t.Errorf("the interval holds in %.1f %% of all", 100*part)
	}
}

// TestCoverage: the 80 % interval holds on 70 to 90 % of all days, and on about as many of each
// kind of day. BenchmarkForecast covers more months.
func TestCoverage(t *testing.T) {
	both, rows := dayAnd24h(t), make(map[string]func() []prediction)
	for i := range 2 * len(kinds) {
		kinds, limits := kinds[i/2], both[:1+i%2]
		rows[fmt.Sprint(strings.Join(kinds, "-"), " ", len(limits))] = func() []prediction {
			return replay(t, uint64(1000+i/2), kinds, limits)
		}
	}
	expectCoverage(t, 0.15, rows)
}
