package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
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
	stop  context.Context // ended: no further page
	tally *meter.Tally
	steps chan step

	stumbles int             // regions in a row that had no answer
	denied   *quota.Decision // the denial that ended the sweep
	closed   bool            // the upstream itself said that the quota is gone
	fatal    error           // why the sweep cannot go on, other than exhaustion
	slip     string          // what the reader panicked with, and where
}

// catch keeps a panic for the caller of Execute.
func (r *reader) catch() {
	if slip := recover(); slip != nil {
		r.slip = fmt.Sprintf("%v\n\n%s", slip, debug.Stack())
	}
}

// sweep visits the regions in turn, until the end of one says that no other can be visited.
func (r *reader) sweep(ctx context.Context, order []visit) {
	for left := slices.Clone(order); len(left) > 0; {
		if r.stop.Err() != nil || ctx.Err() != nil {
			return
		}
		v := left[0]
		left = left[1:]
		if v.known != nil {
			r.steps <- step{region: v.region, result: v.known}
			continue
		}
		if last := len(left) - 1; r.stumbles == maxStumbles-1 && last >= 0 && left[last].known == nil {
			v, left = left[last], slices.Insert(left[:last:last], 0, v)
		}
		before := r.tally.Sum()
		result := r.visit(ctx, v.region)
		result.Units = r.tally.Sum() - before
		r.steps <- step{region: v.region, result: result}
		if r.ended(ctx, result) {
			return
		}
	}
}

// ended reports whether what happened in one region keeps every other from being visited.
func (r *reader) ended(ctx context.Context, result *Region) bool {
	err := result.err
	kind, upstream := fault.KindOf(err)
	if !upstream || kind != fault.Transient && kind != fault.Throttled {
		r.stumbles = 0
	}
	denied, exhausted := errors.AsType[*quota.DeniedError](err)
	switch {
	case err == nil:
		return false
	case exhausted:
		r.denied = &denied.Decision
		return true
	case upstream && kind == fault.Exhausted:
		r.closed = true
		return true
	case upstream && kind == fault.BadCredential:
		r.fatal = err
		return true
	case upstream && (kind == fault.Transient || kind == fault.Throttled):
		if r.stumbles++; r.stumbles == maxStumbles {
			r.fatal = fmt.Errorf("%d regions in a row had no answer: %w", maxStumbles, err)
		}
		return r.fatal != nil
	case upstream, errors.Is(err, errLoop): // this region's own trouble
		return false
	case r.stop.Err() != nil, ctx.Err() != nil: // it was told to stop, by a signal or by the keeper
		return true
	}
	r.fatal = err // the gate or the ledger: it would refuse the next request too
	return true
}

// visit reads the chart of one region. A page token that the upstream does not take any more means one new beginning.
func (r *reader) visit(ctx context.Context, region string) *Region {
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

// resume finds where to go on: at the next page of a chart that was cut off a short while ago, else at the first of a new one.
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
	if !r.Own {
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

// ownCharts is how many of a region's newest charts are looked at for one that is of Run: later runs may have begun some.
const ownCharts = 50

var errLoop = errors.New("the upstream's pages lead back to one that was read already")

// pages reads a chart from the page of token on, and hands each page over. A nil error means that the chart is complete.
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
		case r.stop.Err() != nil:
			return r.stop.Err()
		}
		seen[token] = true
		got, err := r.Client.Chart(ctx, youtube.ChartRequest{Region: c.key.Region, PageToken: token})
		if err != nil {
			return err
		}
		read++
		page := catalog.Page{Token: token, Next: got.Next, Videos: videosOf(got.Videos), FetchedAt: r.Now()}
		page.Last = got.Next == "" || r.enough(read)
		r.steps <- step{region: c.key.Region, page: &fetched{chart: c, page: page}}
		if page.Last {
			return nil
		}
		if r.Own {
			r.steps <- step{}
		}
		token = got.Next
	}
}

func (r *reader) enough(pages int) bool { return r.Pages > 0 && pages >= r.Pages }

// outcomeOf is what a region came to when its reading ended with err; the keeper tells partial from skipped.
func outcomeOf(err error) Outcome {
	kind, upstream := fault.KindOf(err)
	switch {
	case err == nil:
		return Complete
	case upstream && kind == fault.NoChart:
		return Unavailable
	case upstream && kind == fault.Exhausted, errors.Is(err, quota.ErrExhausted),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
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
