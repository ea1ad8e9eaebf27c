package daemon

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/quota"
	share "quotabudget/internal/shareold"
)

// chartMethod is what a page of a chart is charged as.
const chartMethod = "youtube.videos.list"

// Day is what is left of the bucket that charts are charged to until some moment, and what the lanes want of it from now on: until
// the next reset, or, where a window of Shortest or longer slides, until the moment at which it leaves least of what is
// wanted by then. The tightest of the limits decides. It is without lanes where no limit is long enough: there is nothing
// to share then.
func (w *Work) Day(ctx context.Context, now time.Time) (share.Day, time.Time, error) {
	d, err := w.day(ctx, func(Lane) (time.Time, bool) { return now, true })
	return d.Day, d.until, err
}

// day is a share.Day and the stretch of time that it is.
type day struct {
	share.Day
	from, until time.Time // ticks after from, by this host's clock, are of it; until is by the ledger's
}

// skew is how far the ledger's clock is ahead of this host's. A little of it is the way there and back.
func skew(ledger time.Time) time.Duration {
	d := time.Until(ledger)
	if d.Abs() < 5*time.Second {
		return 0
	}
	return d
}

// day is Day for lanes that have come as far as progress says.
func (w *Work) day(ctx context.Context, progress func(Lane) (time.Time, bool)) (day, error) {
	usage, err := w.Sweep.Budget.Usage(context.WithoutCancel(ctx))
	if err != nil {
		return day{}, err
	}
	d := &divider{Work: w, at: usage.At, skew: skew(usage.At), free: math.MaxInt64, done: make([]time.Time, len(w.Lanes)), lanes: make([]share.Lane, len(w.Lanes))}
	for i, l := range w.Lanes {
		if d.lanes[i], err = w.share(ctx, l); err != nil {
			return day{}, err
		}
		if until, ok := progress(l); ok {
			d.done[i] = until
		} else {
			d.done[i] = usage.At.Add(-d.skew - time.Nanosecond)
		}
	}
	for _, b := range usage.Buckets {
		for _, l := range b.Limits {
			if b.Bucket != quota.DefaultBucket {
				continue
			}
			if err := d.consider(ctx, l, b.Held); err != nil {
				return day{}, err
			}
		}
	}
	if s := d.shortest(); s != nil {
		return d.divide(ctx, *s)
	}
	return day{}, nil
}

// divider finds the stretch of time in which units are shortest.
type divider struct {
	*Work
	at      time.Time     // by the ledger's clock
	skew    time.Duration // of that clock against this host's, by which ticks come
	lanes   []share.Lane
	done    []time.Time // of each lane: ticks after it are to come
	entries []quota.Entry
	read    bool // entries

	calendar, sliding *stretch // the shortest of each kind
	free              int64    // what all limits that are shared leave soon
}

// stretch is a share.Stretch and where it lies: entries after from are inside at until.
type stretch struct {
	share.Stretch
	from, until time.Time
	slides      bool
}

// consider takes the stretches of a limit into account.
func (d *divider) consider(ctx context.Context, l quota.LimitUsage, held int64) error {
	w := l.Limit.Window
	switch {
	case daily(l.Limit):
		start, reset := w.Bounds(d.at)
		s := stretch{from: start.Add(-time.Nanosecond), until: reset.Add(-time.Nanosecond)}
		s.Left, s.Wanted = l.Remaining, d.wanted(s)
		d.free = min(d.free, l.Remaining)
		if d.calendar == nil || s.Shorter(d.calendar.Stretch) {
			d.calendar = &s
		}
	case w.Length >= share.Shortest:
		if last := d.horizon(w, share.Horizons); last.Wanted <= l.Remaining { // so is there enough at all others
			return nil
		}
		if err := d.load(ctx); err != nil {
			return err
		}
		soon := stretch{from: d.at.Add(share.Soon - w.Length)}
		d.free = min(d.free, max(0, l.Limit.Cap(false)-d.inside(soon)-held))
		for i := 1; i <= share.Horizons; i++ {
			s := d.horizon(w, i)
			s.Left = max(0, l.Limit.Cap(false)-d.inside(s)-held)
			if d.sliding == nil || s.Shorter(d.sliding.Stretch) {
				d.sliding = &s
			}
		}
	}
	return nil
}

func (d *divider) horizon(w quota.Window, i int) stretch {
	until := time.UnixMicro(share.Horizon(d.at.UnixMicro(), w.Length.Microseconds(), i))
	s := stretch{from: until.Add(-w.Length), until: until, slides: true}
	s.Wanted = d.wanted(s)
	return s
}

// shortest is the stretch that decides; nil when there is none.
func (d *divider) shortest() *stretch {
	if d.calendar == nil || d.sliding != nil && d.sliding.Overrules(d.calendar.Stretch) {
		return d.sliding
	}
	return d.calendar
}

// wanted is what all ticks to come until the end of a stretch want.
func (d *divider) wanted(s stretch) (units int64) {
	for i := range d.lanes {
		units += d.remaining(i, s) * d.lanes[i].Cost
	}
	return units
}

// remaining is how many ticks of a lane are to come until the end of a stretch. A late one of the day before is not of this day.
func (d *divider) remaining(i int, s stretch) int64 {
	from := d.done[i]
	if begin := s.from.Add(-d.skew); !s.slides && begin.After(from) {
		from = begin
	}
	return d.Lanes[i].Lane.Count(from, s.until.Add(-d.skew))
}

// inside is how many of the units that are spent will still be inside at the end of a stretch.
func (d *divider) inside(s stretch) (units int64) {
	for _, e := range d.entries {
		if e.At.After(s.from) {
			units += e.Units
		}
	}
	return units
}

// load reads the entries of all windows, once.
func (d *divider) load(ctx context.Context) (err error) {
	if d.read {
		return nil
	}
	oldest := d.at
	for _, l := range d.Sweep.Budget.Limits {
		since := d.at.Add(-l.Window.Length)
		if l.Window.IsCalendar() {
			since, _ = l.Window.Bounds(d.at)
		}
		if l.Bucket == quota.DefaultBucket && since.Before(oldest) {
			oldest = since
		}
	}
	d.read = true
	d.entries, err = d.charged(ctx, oldest)
	return err
}

// charged are the entries from a moment on of the bucket that is shared.
func (w *Work) charged(ctx context.Context, from time.Time) ([]quota.Entry, error) {
	return w.Sweep.Budget.Ledger.Entries(context.WithoutCancel(ctx), quota.Query{
		Credential: w.Sweep.Budget.Credential, Bucket: quota.DefaultBucket, Since: from.Add(-time.Microsecond),
	})
}

// divide makes the day of the stretch that was found: what each lane has spent in it, and how many ticks it has.
func (d *divider) divide(ctx context.Context, s stretch) (day, error) {
	out := day{share.Day{Left: s.Left, Lanes: d.lanes, Slides: s.slides, Later: max(0, s.Left-d.free)}, s.from.Add(-d.skew), s.until}
	start, end := d.Sweep.Day.Bounds(d.at)
	for i := range d.lanes {
		l, at := d.Lanes[i].Lane, &d.lanes[i]
		at.Remaining = d.remaining(i, s)
		at.Ticks = l.Count(s.from.Add(-d.skew), s.until.Add(-d.skew))
		if s.slides {
			begin := start.Add(-d.skew - time.Nanosecond)
			at.Ticks, at.Number = at.Remaining, share.Number(start, l.Count(begin, end.Add(-d.skew-time.Nanosecond)), l.Count(begin, d.done[i]))
		}
	}
	if !out.Short() {
		return out, nil
	}
	if err := d.load(ctx); err != nil {
		return day{}, err
	}
	for _, e := range d.entries {
		i := slices.IndexFunc(d.Lanes, func(l Lane) bool { return l.Region == e.Labels[quota.LabelRegion] })
		if i >= 0 && e.At.After(s.from) && d.scheduled(e) {
			d.lanes[i].Spent += e.Units
		}
	}
	return out, nil
}

// Unpaced says which regions have not had their floor of the upstream's day yet: a pace does not hold them back. It is nil where
// there is no pace, or no floor.
func (w *Work) Unpaced(ctx context.Context) (func(region string) bool, error) {
	floored := slices.ContainsFunc(w.Lanes, func(l Lane) bool { return l.Floor > 0 })
	if len(w.Sweep.Budget.Paces) == 0 || !floored {
		return nil, nil
	}
	now, err := w.Sweep.Budget.Ledger.Time(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	start, _ := w.Sweep.Day.Bounds(now)
	entries, err := w.charged(ctx, start)
	if err != nil {
		return nil, err
	}
	left := make(map[string]int64) // of the floors
	for _, l := range w.Lanes {
		left[l.Region] = l.Floor
	}
	for _, e := range entries {
		if w.scheduled(e) {
			left[e.Labels[quota.LabelRegion]] -= e.Units
		}
	}
	return func(region string) bool { return left[region] > 0 }, nil
}

// scheduled reports whether the entry is of one of the jobs, not of somebody else who names a region too.
func (w *Work) scheduled(e quota.Entry) bool {
	return slices.ContainsFunc(w.Lanes, func(l Lane) bool { return l.Job == e.Labels[quota.LabelJob] })
}

func daily(l quota.Limit) bool { return l.Window.Calendar == "day" }

// share is a lane as package share sees it, without its ticks and what it has spent.
func (w *Work) share(ctx context.Context, l Lane) (share.Lane, error) {
	out := share.Lane{Region: l.Region, Weight: l.Weight, Priority: l.Priority, Floor: l.Floor}
	pages := l.Pages
	switch chart, _, err := w.Sweep.Catalog.Current(context.WithoutCancel(ctx), catalog.ChartKey{Region: l.Region}, 1); {
	case err == nil && chart.NextPageToken == "": // else it has more
		pages = min(pages, chart.Pages)
	case err == nil:
	case !errors.Is(err, catalog.ErrNotFound):
		return out, err
	}
	for _, cost := range w.Sweep.Budget.Prices[chartMethod] {
		if cost.Bucket == quota.DefaultBucket {
			out.Cost = int64(pages) * cost.Units
		}
	}
	return out, nil
}
