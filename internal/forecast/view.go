package forecast

import (
	"math"
	"slices"
	"time"
)

// view is one way to look back at the log. Nobody knows for how long what was so will be so. Half
// of the days are therefore played by views that forget, each with another half-life, and half by
// views that take the habit to have changed at once, so many hours ago: the likelier the hour, the
// more days.
type view struct {
	calmTo []float64 // running sums of what each calm bin counts
	scale  float64   // of what the calm bins say, to the rate that is likely
	sure   float64   // how much was seen of that rate, in charges
	bursts belief    // how often one begins
}

const (
	// hour is how many bins an hour has.
	hour = int(time.Hour / bin)
	// change is how likely the habit becomes another one within an hour: once a day.
	change = 1.0 / 24
	// slower is how much longer bursts are remembered than ordinary spending, because they are
	// rarer.
	slower = 2
)

// halves are the half-lives in hours.
func halves() [4]float64 { return [4]float64{2, 4, 8, 16} }

// seldom is how often bursts are believed to begin before one was seen: once a day.
func seldom() belief { return belief{0.5, float64(12 * hour)} }

// look makes the views.
func (d *dice) look() {
	for _, half := range halves() {
		d.forgets = append(d.forgets, d.fading(half))
	}
	hours := d.tallies()
	var all tally
	for _, t := range hours {
		all = all.and(t)
	}
	start := habitSpan{calm: belief{1, 1}, bursts: belief{1, 1 / seldom().and(all.bursts, all.looked).rate()}}
	if all.calm > 0 {
		start.calm.looked = all.seen / all.calm
	}
	chances, lasted := spans(hours, start)
	sum := 0.0
	for k, s := range lasted {
		sum += chances[k]
		d.changedTo = append(d.changedTo, sum)
		d.changed = append(d.changed, d.since((k+1)*hour, s))
	}
}

// fading is the view that forgets half of what it saw in so many hours.
func (d *dice) fading(half float64) view {
	v := view{scale: 1, bursts: seldom()}
	var sum, square, weight float64
	for _, i := range d.calm {
		f := faded(i, half)
		weight, sum, square = weight+f, sum+f*d.units[i], square+f*f*d.units[i]
		v.calmTo = append(v.calmTo, weight)
	}
	v.sure = 1
	if square > 0 {
		v.sure = sum * sum / square / d.grain
	}
	for i := d.surge; i < len(d.units); i++ {
		if !d.blind[i] {
			v.bursts = v.bursts.and(0, faded(i, slower*half))
		}
	}
	for _, b := range d.bursts {
		v.bursts = v.bursts.and(faded(b.last, slower*half), 0)
	}
	return v
}

// faded is what a bin still counts.
func faded(i int, half float64) float64 { return math.Exp2(-float64(i) / (half * float64(hour))) }

// since is the view for which the present habit began so many bins ago, of which s is known.
func (d *dice) since(bins int, s habitSpan) view {
	v := view{scale: 1, sure: s.calm.count, bursts: s.bursts}
	var sum, n float64
	for _, i := range d.calm {
		if i < bins {
			sum, n = sum+d.units[i], n+1
		}
		v.calmTo = append(v.calmTo, n)
	}
	if sum == 0 { // nothing to pick from: all that is calm, made less
		sum, n = 0, float64(len(d.calm))
		for j, i := range d.calm {
			sum, v.calmTo[j] = sum+d.units[i], float64(j+1)
		}
	}
	if sum > 0 {
		v.scale = s.calm.rate() * d.grain * n / sum
	}
	return v
}

// tally is what was seen in an hour.
type tally struct {
	calm, seen     float64 // charges, in bins outside of surges
	bursts, looked float64 // begun, in bins outside of the present surge
}

func (t tally) and(u tally) tally {
	return tally{t.calm + u.calm, t.seen + u.seen, t.bursts + u.bursts, t.looked + u.looked}
}

// tallies are those of the hours back from now.
func (d *dice) tallies() []tally {
	hours := make([]tally, (len(d.units)+hour-1)/hour)
	for _, i := range d.calm {
		hours[i/hour] = hours[i/hour].and(tally{calm: d.units[i] / d.grain, seen: 1})
	}
	for i := d.surge; i < len(d.units); i++ {
		if !d.blind[i] {
			hours[i/hour].looked++
		}
	}
	for _, b := range d.bursts {
		hours[(b.last+b.bins-1)/hour].bursts++
	}
	return hours
}

// habitSpan is a time of one habit.
type habitSpan struct{ calm, bursts belief }

func (s habitSpan) and(t tally) habitSpan {
	return habitSpan{s.calm.and(t.calm, t.seen), s.bursts.and(t.bursts, t.looked)}
}

func (s habitSpan) likely(t tally) float64 {
	return s.calm.likely(t.calm, t.seen) * s.bursts.likely(t.bursts, t.looked)
}

// spans is how likely the present habit has lasted for one hour, for two, and so on, and what is
// known of it then: by Bayes, over all ways to cut the log into spans of one habit, of which
// nothing is known but start when they begin.
func spans(hours []tally, start habitSpan) (chances []float64, lasted []habitSpan) {
	for _, t := range slices.Backward(hours) {
		longer, known := []float64{1}, []habitSpan{start.and(t)}
		if len(chances) > 0 {
			longer[0] = change * start.likely(t)
		}
		sum := longer[0]
		for k, s := range lasted {
			longer, known = append(longer, chances[k]*(1-change)*s.likely(t)), append(known, s.and(t))
			sum += longer[k+1]
		}
		for k := range longer {
			longer[k] /= sum
		}
		chances, lasted = longer, known
	}
	return chances, lasted
}
