package ingest

import (
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

// reader asks the upstream, one request at a time, and hands what comes to the keeper.
type reader struct {
	*Sweep
	queue *queue
	steps chan<- step
	visit *visit // under way
}

// sweep visits the regions that the queue hands out.
func (r *reader) sweep(ctx context.Context) {
	defer r.queue.catch()
	for {
		v := r.queue.take(ctx)
		if v == nil {
			return
		}
		if v.known != nil {
			r.steps <- step{region: v.region, result: v.known}
			continue
		}
		r.visit = v
		result := r.read(meter.WithTally(ctx, &v.tally), v.region)
		result.Units = v.tally.Sum()
		r.steps <- step{region: v.region, result: result}
		r.queue.done(ctx, v, result.err)
	}
}

// read reads the chart of one region. A page token that the upstream does not take any more means
// one new beginning.
func (r *reader) read(ctx context.Context, region string) *Region {
	ctx = meter.WithCall(ctx, quota.Call{Unpaced: r.Unpaced != nil && r.Unpaced(region), Labels: quota.Labels{
		quota.LabelRegion: region, quota.LabelJob: r.Job, quota.LabelRun: r.Run}})
	// First, since it may wait for another writer: what is stored by then must not be asked for.
	err := r.Catalog.CheckRoom(ctx)
	var c *chart
	var token string
	if err == nil {
		c, token, err = r.resume(ctx, region)
	}
	if err != nil {
		return &Region{Region: region, Outcome: outcomeOf(err), err: fmt.Errorf("%w: %w", ErrCatalogue, err)}
	}
	result := &Region{Region: region, Pages: c.pages, Videos: c.videos}
	err = r.pages(ctx, c, token)
	if kind, ok := fault.KindOf(err); ok && kind == fault.BadPageToken {
		r.Log.Warn("the upstream does not take the page token any more: chart begun again", "region", region)
		err = r.pages(ctx, &chart{key: c.key}, "")
	}
	result.Outcome, result.err = outcomeOf(err), err
	return result
}

// resume finds where to go on: at the next page of a chart that was cut off a short while ago, else
// at the first of a new one.
func (r *reader) resume(ctx context.Context, region string) (c *chart, token string, err error) {
	c = &chart{key: catalog.ChartKey{Region: region}}
	fresh := r.Resume
	if fresh == 0 {
		fresh = DefaultResume
	}
	old, ok, err := r.cutOff(ctx, c.key, r.Now().Add(-fresh))
	if err != nil || !ok {
		return c, "", err
	}
	r.Log.Info("chart resumed", "region", region, "pages", old.Pages)
	c.id, c.pages, c.videos = old.ID, old.Pages, old.Videos
	return c, old.NextPageToken, nil
}

// cutOff is the chart to go on with, begun at or after notBefore.
func (r *reader) cutOff(ctx context.Context, key catalog.ChartKey, notBefore time.Time) (catalog.Chart, bool, error) {
	if !r.OnlyThisRun {
		return r.Catalog.Resume(ctx, key, notBefore)
	}
	charts, err := r.Catalog.Charts(ctx, key, ownCharts)
	for _, c := range charts {
		if c.Run == r.Run && c.CompletedAt.IsZero() && !c.StartedAt.Before(notBefore.Truncate(time.Microsecond)) {
			return c, true, nil
		}
	}
	return catalog.Chart{}, false, err
}

// ownCharts is how many of a region's newest charts are looked at for one that is of Run: later
// runs may have begun some.
const ownCharts = 50

var errLoop = errors.New("the upstream's pages lead back to one that was read already")

// pages reads a chart from the page of token on, and hands each page over. A nil error means that
// the chart is complete.
func (r *reader) pages(ctx context.Context, c *chart, token string) error {
	read := c.pages
	seen := make(map[string]bool)
	for {
		if read > 0 && (token == "" || r.enough(read)) {
			r.steps <- step{region: c.key.Region, page: &fetched{chart: c}}
			return nil
		}
		switch {
		case c.taken.Load():
			return nil
		case seen[token]:
			return errLoop
		}
		if err := r.queue.ask(r.visit); err != nil {
			return err
		}
		seen[token] = true
		got, err := r.Client.Chart(ctx, youtube.ChartRequest{Region: c.key.Region, PageToken: token})
		if err != nil {
			return err
		}
		r.queue.answered(r.visit)
		read++
		page := catalog.Page{Token: token, Next: got.Next, Videos: videosOf(got.Videos), FetchedAt: r.Now()}
		page.Last = got.Next == "" || r.enough(read)
		r.steps <- step{region: c.key.Region, page: &fetched{chart: c, page: page}}
		if page.Last {
			return nil
		}
		if r.OnlyThisRun {
			r.steps <- step{}
		}
		token = got.Next
	}
}

func (r *reader) enough(pages int) bool { return r.Pages > 0 && pages >= r.Pages }

// outcomeOf is what a region came to when its reading ended with err; the keeper tells partial from
// skipped.
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
			ID: v.ID, Title: v.Title, ChannelID: v.ChannelID, ChannelTitle: v.ChannelTitle, Category: v.CategoryID,
			Description: v.Description, Duration: isoDuration(v.Duration), Tags: v.Tags, PublishedAt: v.PublishedAt,
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
