package serve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// account is a bucket of a credential: its units left, its spenders and its forecast.
type account struct {
	Credential string // "" when there is only one
	quota.BucketUsage
	At       time.Time
	Main     quota.LimitUsage // the limit that is drawn
	Pace     *quota.Limit     // nil if there is none
	Forecast plan.Forecast    // zero if unknown

	unit     costs.Unit
	from, to time.Time // of the plot
	sums     []quota.Sum
	Plot     *plot
	Rows     []burnt
	Spenders []spender
}

// Binding returns the limit with the fewest units left. A limit on concurrent calls counts only if
// there is no other.
func (a *account) Binding() quota.LimitUsage {
	return slices.MinFunc(a.Limits, func(x, y quota.LimitUsage) int {
		switch inFlight := x.Limit.Window.Concurrent; {
		case inFlight == y.Limit.Window.Concurrent:
			return cmp.Compare(x.Remaining, y.Remaining)
		case inFlight:
			return 1
		}
		return -1
	})
}

// Left returns the units that a scheduled charge can take now.
func (a *account) Left() int64 {
	if a.Suspended() {
		return 0
	}
	return a.Binding().Remaining
}

// Binds names the limit that determines Left.
func (a *account) Binds() string {
	if a.Suspended() {
		return "suspended until " + endClock(a.At, a.SuspendedUntil)
	}
	return a.Binding().Limit.Window.Text()
}

// Grade returns how to draw the bucket: good, warn or bad.
func (a *account) Grade() string {
	switch {
	case a.Forecast.Verdict == plan.Exhausted, a.Forecast.Verdict == plan.Closed,
		a.Forecast.Verdict == plan.Suspended:
		return "bad"
	case a.Forecast.Short():
		return "warn"
	}
	return "good"
}

// Name returns the name of the bucket, with its credential if there are several.
func (a *account) Name() string {
	name := quota.ShownBucket(a.Bucket)
	if a.Credential != "" {
		name = a.Credential + " " + name
	}
	return name
}

// Busy reports whether units of the bucket are spent, held or missing. Units spent before a
// reset count as long as they are in the window of one of the bucket's limits.
func (a *account) Busy() bool {
	used := func(l quota.LimitUsage) bool { return l.Used > 0 }
	return len(a.Spenders) > 0 || a.Held > 0 || slices.ContainsFunc(a.Limits, used) ||
		a.Grade() != "good"
}

// Calendar reports whether the main limit follows the calendar or a reset that the upstream
// reports.
func (a *account) Calendar() bool { return !a.ResetsAt().IsZero() }

// ResetsAt returns when the main limit's window ends as a whole; zero if it slides.
func (a *account) ResetsAt() time.Time { return a.Ends(a.Main.Limit.Window, a.At) }

// Counts describes a window that does not end.
func (a *account) Counts() string {
	switch w := a.Main.Limit.Window; {
	case w.Concurrent:
		return "counts what is held"
	case w.IsRestoring():
		return fmt.Sprintf("regains %d in %v", w.Restore.Units, w.Restore.Per)
	case w.Anchored:
		return "counts the last " + quota.Sliding(w.Length).Text()
	default:
		return "counts the last " + w.Text()
	}
}

// In formats an amount without its unit, which Noun returns. Money has no noun.
func (a *account) In(units int64) string {
	amount, _, _ := strings.Cut(a.unit.Text(units), " ")
	return amount
}

// Noun returns the name of the unit, after a space.
func (a *account) Noun() string {
	_, noun, named := strings.Cut(a.unit.Text(0), " ")
	if !named {
		return ""
	}
	return " " + noun
}

// Suspended reports whether the bucket is suspended now.
func (a *account) Suspended() bool { return a.SuspendedUntil.After(a.At) }

// spender is a caller or lane that spent units of a bucket.
type spender struct {
	Name  string
	Units int64
	Part  int64 // percent of all units spent
}

const (
	// the spenders named; the others are summed up
	maxSpenders = 6
	// forecastFor is how long a forecast is cached: making it takes longer than making the page
	forecastFor = 20 * time.Second
)

// accounts returns an account for each bucket with a limit, and a sentence for each split bucket
// with parts that are not shown.
func (p *site) accounts(ctx context.Context) (all []*account, more []string, err error) {
	from := p.Source()
	forecasts, err := p.forecasts.get(ctx, forecastFor,
		func(ctx context.Context) ([]report.Forecast, error) { return from.Forecasts(ctx, "") })
	if err != nil {
		return nil, nil, err
	}
	for _, c := range from.Config.Credentials {
		table := from.Config.Table(c)
		budget := c.Budget(from.Ledger, table, p.Log)
		usage, err := budget.Usage(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, bucket := range slices.Sorted(maps.Keys(usage.LeftOut)) {
			more = append(more, fmt.Sprintf("%s: and %s more parts of %s, which took less", c.Name,
				count(usage.LeftOut[bucket]), bucket))
		}
		for _, b := range usage.Buckets {
			a := &account{BucketUsage: b, At: usage.At, Main: mainLimit(b.Limits),
				unit: report.UnitOf(table, b.Bucket)}
			if len(from.Config.Credentials) > 1 {
				a.Credential = c.Name
			}
			for _, f := range forecasts {
				if f.Credential == c.Name && f.Bucket == b.Bucket {
					a.Forecast = f.Forecast
				}
			}
			for i, pace := range budget.Paces {
				if pace.Bucket == b.Bucket {
					a.Pace = &budget.Paces[i]
				}
			}
			sums, err := quota.SumsAfter(ctx, from.Ledger, quota.SumQuery{
				Credential: c.Name, Bucket: b.Bucket, Since: quota.GrainOf(a.since())})
			if err != nil {
				return nil, nil, err
			}
			a.draw(sums)
			all = append(all, a)
		}
	}
	return all, more, nil
}

// mainLimit returns the limit to draw: the day's, unless another one leaves much less. Limits per
// few minutes are drawn only if there is no other.
func mainLimit(limits []quota.LimitUsage) quota.LimitUsage {
	weight := func(l quota.LimitUsage) float64 {
		switch w := l.Limit.Window; {
		case w.Calendar == "day":
			return float64(l.Remaining) / 2
		case l.Limit.Reach() < 6*time.Hour:
			return math.Inf(1)
		}
		return float64(l.Remaining)
	}
	return slices.MinFunc(limits, func(a, b quota.LimitUsage) int {
		return cmp.Or(cmp.Compare(weight(a), weight(b)), cmp.Compare(a.Remaining, b.Remaining))
	})
}

// since returns the earliest time whose spending matters for the plot.
func (a *account) since() time.Time {
	window := a.Main.Limit.Window
	if window.IsCalendar() {
		start, _ := window.Bounds(a.At)
		return start
	}
	return a.At.Add(-2 * lengthOf(a.Main.Limit)) // units that have left the window by now did count before
}

// spenders sums the units spent since a moment: lanes by job and region, other callers by their
// labels.
func spenders(sums []quota.Sum, since time.Time) []spender {
	units := make(map[string]int64)
	total := int64(0)
	for _, s := range sums {
		if s.At.Before(since) {
			continue
		}
		name := s.Labels[quota.LabelJob]
		switch region := s.Labels[quota.LabelRegion]; {
		case name == "":
			name = s.Labels[quota.LabelMethod]
		case region != "":
			name += " " + region
		}
		units[cmp.Or(name, "(no label)")] += s.Units
		total += s.Units
	}
	var all []spender
	for name, n := range units {
		all = append(all, spender{name, n, percent(n, total)})
	}
	slices.SortFunc(all, func(a, b spender) int {
		return cmp.Or(cmp.Compare(b.Units, a.Units), cmp.Compare(a.Name, b.Name))
	})
	if len(all) > maxSpenders {
		others := spender{Name: fmt.Sprintf("%d others", len(all)-maxSpenders+1)}
		for _, s := range all[maxSpenders-1:] {
			others.Units += s.Units
		}
		others.Part = percent(others.Units, total)
		all = append(all[:maxSpenders-1], others)
	}
	return all
}

// cached holds a value that is slow to compute.
type cached[T any] struct {
	mu    sync.Mutex
	value T
	at    time.Time
}

func (c *cached[T]) get(ctx context.Context, age time.Duration,
	make func(context.Context) (T, error)) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && time.Since(c.at) < age {
		return c.value, nil
	}
	value, err := make(ctx)
	if err != nil {
		return value, err
	}
	c.value, c.at = value, time.Now()
	return value, nil
}
