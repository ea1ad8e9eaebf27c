package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// chartMethod is what a page of a chart is charged as.
const chartMethod = "youtube.videos.list"

// Day is what is left until the next reset of the bucket that charts are charged to, and what the lanes want of it from now
// on. It is without lanes where no limit of the bucket follows the day: there is nothing to share then.
func (w *Work) Day(ctx context.Context, now time.Time) (share.Day, time.Time, error) {
	return w.day(ctx, func(Lane) (time.Time, bool) { return now, true })
}

// day is Day for lanes that have come as far as progress says.
func (w *Work) day(ctx context.Context, progress func(Lane) (time.Time, bool)) (share.Day, time.Time, error) {
	usage, err := w.Sweep.Budget.Usage(context.WithoutCancel(ctx))
	if err != nil {
		return share.Day{}, time.Time{}, err
	}
	limit, ok := tightest(usage)
	if !ok {
		return share.Day{}, time.Time{}, nil
	}
	start, reset := limit.Limit.Window.Bounds(usage.At)
	day := share.Day{Left: limit.Remaining, Lanes: make([]share.Lane, len(w.Lanes))}
	for i, l := range w.Lanes {
		if day.Lanes[i], err = w.share(ctx, l); err != nil {
			return share.Day{}, time.Time{}, err
		}
		from, last := start.Add(-time.Nanosecond), reset.Add(-time.Nanosecond)
		day.Lanes[i].Ticks = l.count(from, last)
		if until, ok := progress(l); ok && until.After(from) {
			from = until
		}
		day.Lanes[i].Remaining = l.count(from, last)
	}
	if !day.Short() {
		return day, reset, nil
	}
	return day, reset, w.spent(ctx, &day, start)
}

// began is when the day began that ends at reset.
func (w *Work) began(reset time.Time) time.Time {
	for _, l := range w.Sweep.Budget.Limits {
		if daily(l) {
			if start, end := l.Window.Bounds(reset.Add(-time.Second)); end.Equal(reset) {
				return start
			}
		}
	}
	return time.Time{}
}

func daily(l quota.Limit) bool { return l.Bucket == quota.DefaultBucket && l.Window.Calendar == "day" }

// tightest is the day's limit that leaves least. Of a sliding window nothing is shared: its units come free all day long.
func tightest(usage quota.Usage) (least quota.LimitUsage, found bool) {
	for _, b := range usage.Buckets {
		for _, l := range b.Limits {
			if daily(l.Limit) && (!found || l.Remaining < least.Remaining) {
				least, found = l, true
			}
		}
	}
	return least, found
}

// share is a lane as package share sees it, without its ticks and what it has spent.
func (w *Work) share(ctx context.Context, l Lane) (share.Lane, error) {
	out := share.Lane{Region: l.Region, Weight: l.Weight, Floor: l.Floor}
	pages := l.Pages
	switch chart, _, err := w.Sweep.Catalog.Current(context.WithoutCancel(ctx), catalog.ChartKey{Region: l.Region}, 1); {
	case err == nil:
		pages = min(pages, chart.Pages)
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

// count is how many ticks run after from and not after to.
func (l Lane) count(from, to time.Time) (n int64) {
	for range l.Lane.Ticks(from, to) {
		n++
	}
	return n
}

// spent fills in what has been spent on each lane's region since the day began, by any of the jobs.
func (w *Work) spent(ctx context.Context, day *share.Day, start time.Time) error {
	entries, err := w.Sweep.Budget.Ledger.Entries(context.WithoutCancel(ctx), quota.Query{
		Credential: w.Sweep.Budget.Credential, Bucket: quota.DefaultBucket, Since: start.Add(-time.Microsecond),
	})
	if err != nil {
		return err
	}
	for _, e := range entries {
		i := slices.IndexFunc(w.Lanes, func(l Lane) bool { return l.Region == e.Labels[quota.LabelRegion] })
		if i >= 0 && slices.ContainsFunc(w.Lanes, func(l Lane) bool { return l.Job == e.Labels[quota.LabelJob] }) {
			day.Lanes[i].Spent += e.Units
		}
	}
	return nil
}
