package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/youtube"
	"quotabudget/internal/youtube/fault"
)

// reader visits regions one after the other. It asks the upstream for one page at a time, and has
// it stored while it asks for the next one: the upstream's answer takes longer than the disk.
type reader struct {
	*Sweep
	queue *queue
	visit *visit // under way
	chart *chart // of the visit; being stored as long as storing is not nil

	storing chan error // receives or is closed when the last page is stored
}

// chart is the chart that is being read.
type chart struct {
	key    catalog.ChartKey
	id     catalog.ChartID // 0 until its first page is stored
	after  catalog.ChartID // the one before it
	pages  int
	videos int
	taken  bool // another sweep, which had resumed it, has completed it
}

// sweep visits the regions that it takes from the queue.
func (r *reader) sweep(ctx context.Context) {
	defer r.queue.catch()
	defer r.stored() // of a visit that panics
	for {
		v := r.queue.take(ctx)
		if v == nil {
			return
		}
		if v.Known {
			r.end(ctx, v)
			continue
		}
		r.visit = v
		v.err = r.read(meter.WithTally(ctx, &v.tally), v.Region.Region)
		v.Outcome, v.Units = outcomeOf(v.err), v.tally.Sum()
		r.end(ctx, v)
		r.queue.done(ctx, v)
	}
}

// read reads the chart of one region. If the upstream refuses a page token, the chart is read again
// from its start, once.
func (r *reader) read(ctx context.Context, region string) error {
	of := quota.Labels{quota.LabelRegion: region, quota.LabelJob: r.Job, quota.LabelRun: r.Run}
	unpaced := r.Unpaced != nil && r.Unpaced(region)
	ctx = meter.WithCall(ctx, quota.Call{Unpaced: unpaced, Labels: of})
	// First, since it may wait for another writer: what is stored by then must not be asked for.
	err := r.Catalog.CheckRoom(ctx)
	var token string
	if err == nil {
		token, err = r.resume(ctx, region)
	}
	if err != nil {
		return r.queue.abort(ctx, err)
	}
	err = r.pages(ctx, token)
	if kind, ok := fault.KindOf(err); ok && kind == fault.BadPageToken {
		r.Log.Warn("page token expired: reading the chart again from its start", "region", region)
		r.chart = &chart{key: r.chart.key, after: r.chart.id}
		err = r.pages(ctx, "")
	}
	return err
}

// resume finds where to begin: at the next page of a chart that was interrupted a short while ago,
// else at the first of a new one.
func (r *reader) resume(ctx context.Context, region string) (token string, err error) {
	key := catalog.ChartKey{Region: region}
	old, ok, err := r.interrupted(ctx, key, r.Now().Add(-cmp.Or(r.Resume, DefaultResume)))
	r.chart = &chart{key: key, after: old.ID}
	if err != nil || !ok {
		return "", err
	}
	r.Log.Info("chart resumed", "region", region, "pages", old.Pages)
	r.chart.id = old.ID
	r.count(old.Pages, old.Videos)
	return old.NextPageToken, nil
}

// count notes how much of the chart is stored.
func (r *reader) count(pages, videos int) {
	r.chart.pages, r.chart.videos = pages, videos
	r.visit.Pages, r.visit.Videos = pages, videos
}

// interrupted is the chart to resume, begun at or after notBefore; if there is none, the newest.
func (r *reader) interrupted(ctx context.Context, key catalog.ChartKey, notBefore time.Time) (
	catalog.Chart, bool, error) {
	if !r.OnlyThisRun {
		return r.Catalog.Resume(ctx, key, notBefore)
	}
	charts, err := r.Catalog.Charts(ctx, key, ownCharts)
	notBefore = notBefore.Truncate(time.Microsecond)
	for _, c := range charts {
		if c.Run == r.Run && c.CompletedAt.IsZero() && !c.StartedAt.Before(notBefore) {
			return c, true, nil
		}
	}
	if len(charts) > 0 {
		return charts[0], false, err
	}
	return catalog.Chart{}, false, err
}

// ownCharts is how many of a region's newest charts are looked at for one of Run: later runs may
// have begun some.
const ownCharts = 50

var errLoop = errors.New("a page token leads back to a page that was read before")

// pages reads and stores the chart from the page of token on. A nil error means that it is
// complete.
func (r *reader) pages(ctx context.Context, token string) error {
	c := r.chart
	if c.pages > 0 && (token == "" || r.enough(c.pages)) { // interrupted when only this was left
		ctx = context.WithoutCancel(ctx)
		return r.queue.abort(ctx, r.Catalog.Complete(ctx, c.id, r.Now()))
	}
	err := r.ask(ctx, token)
	if failed := r.stored(); failed != nil {
		return failed
	}
	return err
}

// ask asks for the pages from the one of token on, and has each stored while it asks for the next.
func (r *reader) ask(ctx context.Context, token string) error {
	c := r.chart
	seen := make(map[string]bool)
	for read := c.pages + 1; ; read++ {
		if seen[token] {
			return errLoop
		}
		seen[token] = true
		if err := r.queue.ask(r.visit); err != nil {
			return err
		}
		request := youtube.ChartRequest{Region: c.key.Region, PageToken: token}
		got, err := r.Client.Chart(ctx, request)
		if err != nil {
			return err
		}
		r.queue.answered(r.visit)
		page := catalog.Page{Token: token, Next: got.Next, Videos: videosOf(got.Videos),
			FetchedAt: r.Now(), Last: got.Next == "" || r.enough(read)}
		if err := r.stored(); err != nil || c.taken {
			return err
		}
		r.store(ctx, page)
		if page.Last {
			return nil
		}
		if r.OnlyThisRun {
			if err := r.stored(); err != nil || c.taken {
				return err
			}
		}
		token = got.Next
	}
}

func (r *reader) enough(pages int) bool { return r.Pages > 0 && pages >= r.Pages }

// outcomeOf is what a region came to when its reading ended with err.
func outcomeOf(err error) Outcome {
	kind, upstream := fault.KindOf(err)
	_, halted := errors.AsType[stopped](err)
	switch {
	case err == nil:
		return Complete
	case halted:
		return Skipped
	case upstream && kind == fault.NoChart:
		return Unavailable
	case upstream && kind == fault.Exhausted, errors.Is(err, quota.ErrExhausted):
		return Skipped
	case upstream: // which may wrap the end of a request that took too long
		return Failed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Skipped
	}
	return Failed
}

func videosOf(list []youtube.Video) []catalog.Video {
	videos := make([]catalog.Video, len(list))
	for i, v := range list {
		videos[i] = catalog.Video{
			ID: v.ID, Title: v.Title, ChannelID: v.ChannelID, ChannelTitle: v.ChannelTitle,
			Category: v.CategoryID, Description: v.Description, Duration: isoDuration(v.Duration),
			Tags: v.Tags, PublishedAt: v.PublishedAt,
			Views: v.Views, Likes: v.Likes, Comments: v.Comments,
		}
	}
	return videos
}

func isoDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("PT%dS", int64(d.Seconds()))
}
