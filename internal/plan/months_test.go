package plan

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// monthKinds are ways to spend money on a metered API, in dollars by day. The forecast was not
// developed with any of them.
var monthKinds = map[string]func(*rand.Rand) func(day time.Time, i int) float64{
	"steady": func(r *rand.Rand) func(time.Time, int) float64 {
		return func(time.Time, int) float64 { return 10 * (0.8 + 0.4*r.Float64()) }
	},
	"office": func(r *rand.Rand) func(time.Time, int) float64 {
		return func(day time.Time, _ int) float64 {
			if wd := day.Weekday(); wd == time.Saturday || wd == time.Sunday {
				return 0.5 + r.Float64()
			}
			return 14 * math.Exp(0.3*r.NormFloat64())
		}
	},
	"drifting": func(r *rand.Rand) func(time.Time, int) float64 {
		level := 0.0
		return func(time.Time, int) float64 {
			level = 0.9*level + 0.25*r.NormFloat64()
			return 10 * math.Exp(level)
		}
	},
	"growing": func(r *rand.Rand) func(time.Time, int) float64 {
		growth := 0.02 * r.Float64()
		return func(_ time.Time, i int) float64 {
			return 5 * math.Exp(growth*float64(i)+0.2*r.NormFloat64())
		}
	},
	"batches": func(r *rand.Rand) func(time.Time, int) float64 {
		return func(time.Time, int) float64 {
			if r.IntN(4) == 0 {
				return 2 + 40*r.Float64()
			}
			return 2 + r.Float64()
		}
	},
	"launch": func(r *rand.Rand) func(time.Time, int) float64 {
		at, times := 31+r.IntN(28), 1.5+2*r.Float64()
		return func(_ time.Time, i int) float64 {
			if i >= at {
				return 6 * times * math.Exp(0.2*r.NormFloat64())
			}
			return 6 * math.Exp(0.2*r.NormFloat64())
		}
	},
}

// monthly returns a month of spending after a complete one, and when it runs dry under a limit,
// or zero.
func monthly(kind string, seed uint64) (spent []quota.Spent, limit quota.Limit, dry time.Time) {
	r := rand.New(rand.NewPCG(seed, 11))
	perDay := monthKinds[kind](r)
	from, begin := date(10, 1), date(11, 1)
	var total int64
	for i, day := 0, from; day.Before(date(12, 1)); i, day = i+1, day.AddDate(0, 0, 1) {
		money := perDay(day, i) * 1e6
		calls := 20 + r.IntN(60)
		var today []quota.Spent
		for range calls {
			h := 8 + 12*r.Float64()
			if r.IntN(5) == 0 {
				h = 24 * r.Float64()
			}
			at := day.Add(time.Duration(h * float64(time.Hour)))
			units := 1 + int64(money/float64(calls)*2*r.Float64())
			today = append(today, quota.Spent{At: at, Units: units, Charges: 1,
				Labels: quota.Labels{quota.LabelMethod: "messages.create"}})
		}
		slices.SortFunc(today, func(a, b quota.Spent) int { return a.At.Compare(b.At) })
		spent = append(spent, today...)
		if !day.Before(begin) {
			for _, s := range today {
				total += s.Units
			}
		}
	}
	limit = quota.Limit{Bucket: "money", Units: int64(float64(total) * (0.6 + 0.55*r.Float64())),
		Window: quota.Window{Calendar: "month", Zone: time.UTC}}
	var used int64
	for _, s := range spent {
		if !s.At.Before(begin) {
			if used += s.Units; used > limit.Units {
				return spent, limit, s.At
			}
		}
	}
	return spent, limit, time.Time{}
}

func date(month time.Month, day int) time.Time {
	return time.Date(2026, month, day, 0, 0, 0, 0, time.UTC)
}

// askedIn returns forecasts during a month, every third day at noon.
func askedIn(kind string, seed uint64) (all []prediction) {
	spent, limit, dry := monthly(kind, seed)
	for _, day := range []int{4, 8, 12, 16, 20, 24} {
		at := date(11, day).Add(13 * time.Hour)
		if !dry.IsZero() && !at.Before(dry) {
			break
		}
		limits := []quota.Limit{limit}
		b := Bucket{Standing: Standing{Name: "money"}, At: at, Limits: limits}
		for _, s := range spent {
			if s.At.After(at.Add(-Memory(limits))) && s.At.Before(at) {
				b.Spent = append(b.Spent, s)
			}
		}
		all = append(all, prediction{percent: day, said: ForecastOf(b), actual: dry})
	}
	return all
}

// TestMonths: the interval holds in seven to nine of ten months of metered spending, over all
// kinds. A single kind may deviate more: launches are not announced.
func TestMonths(t *testing.T) {
	rows := make(map[string]func() []prediction)
	for kind := range monthKinds {
		rows[kind] = func() (predictions []prediction) {
			for seed := range uint64(*monthsPlayed) {
				predictions = append(predictions, askedIn(kind, 100+seed)...)
			}
			return predictions
		}
	}
	expectCoverage(t, 1, rows)
}

var monthsPlayed = flag.Int("months-played", 4, "months of each kind, for TestMonths")
