package ingest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/youtube"
)

// reader visits regions one after another. It requests a page once the one before is stored.
type reader struct {
	*Sweep
	queue *queue
	visit *visit // in progress
	chart *chart // the visit's chart
}

type chart struct {
	region    string
	id        catalog.ChartID // 0 until its first page is stored
	after     catalog.ChartID // the newest chart before it
	reading   int             // number of the page in progress, counted from 1
	pages     int             // stored
	videos    int             // on the stored pages
	overtaken bool            // another sweep resumed and completed it
}

// sweep visits the regions it takes from the queue.
func (r *reader) sweep(ctx context.Context) {
	defer r.queue.catch()
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

// read reads the chart of one region. If the upstream refuses a page token, it starts the chart
// again, once.
func (r *reader) read(ctx context.Context, region string) error {
	labels := quota.Labels{quota.LabelRegion: region, quota.LabelJob: r.Job, quota.LabelRun: r.Run}
	unpaced := r.Unpaced != nil && r.Unpaced(region)
	ctx = meter.WithCall(ctx, quota.Call{Unpaced: unpaced, Labels: labels})
	// First, because it may wait for another writer, whose pages need not be requested again.
	err := r.Catalog.CheckRoom(ctx)
	var token string
	if err == nil {
		token, err = r.resume(ctx, region)
	}
	if err != nil {
		return r.queue.abort(ctx, err)
	}
	err = r.pages(ctx, token)
	if kind, ok := youtube.KindOf(err); ok && kind == youtube.BadPageToken {
		r.Log.Warn("page token expired: reading the chart again from its start", "region", region)
		r.chart = &chart{region: r.chart.region, after: r.chart.id}
		err = r.pages(ctx, "")
	}
	return err
}

// resume returns where to begin: the next page of a recently interrupted chart, or the first page
// of a new one.
func (r *reader) resume(ctx context.Context, region string) (token string, err error) {
	old, ok, err := r.interrupted(ctx, region, r.Now().Add(-cmp.Or(r.Resume, DefaultResume)))
	r.chart = &chart{region: region, after: old.ID}
	if err != nil || !ok {
		return "", err
	}
	r.Log.Info("chart resumed", "region", region, "pages", old.Pages)
	r.chart.id = old.ID
	r.count(old.Pages, old.Videos)
	return old.NextPageToken, nil
}

// count records how much of the chart is stored.
func (r *reader) count(pages, videos int) {
	r.chart.pages, r.chart.videos = pages, videos
	r.visit.Pages, r.visit.Videos = pages, videos
}

// interrupted returns the chart to resume, begun at or after notBefore, or else the newest one.
func (r *reader) interrupted(ctx context.Context, region string, notBefore time.Time) (
	catalog.Chart, bool, error) {
	if !r.OnlyThisRun {
		return r.Catalog.Resume(ctx, region, notBefore)
	}
	charts, err := r.Catalog.Charts(ctx, region, ownCharts)
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

// ownCharts is how many of a region's newest charts are searched for one of Run. Later runs may
// have begun newer ones.
const ownCharts = 50

var errLoop = errors.New("a page token leads back to an earlier page")

// errEmpty reports an empty chart, so that the stored one is kept. The upstream answers differently
// for a region without a chart, so the next sweep requests this one again.
var errEmpty = &youtube.Error{Fault: youtube.Fault{Kind: youtube.NoChart, Status: http.StatusOK,
	Message: "the chart is empty"}}

// pages reads and stores the chart, starting at token. It returns nil once the chart is complete.
func (r *reader) pages(ctx context.Context, token string) error {
	c := r.chart
	// a page that is paid for is stored even after ctx has ended
	paid := context.WithoutCancel(ctx)
	if c.pages > 0 && (token == "" || r.enough(c.pages)) { // interrupted just before Complete
		if c.videos == 0 {
			return errEmpty
		}
		return r.queue.abort(paid, r.Catalog.Complete(paid, c.id, r.Now()))
	}
	tokens := make(map[string]bool)
	for read := c.pages + 1; ; read++ {
		if tokens[token] {
			return errLoop
		}
		tokens[token], c.reading = true, read
		if err := r.queue.ask(r.visit); err != nil {
			return err
		}
		got, err := r.Client.Chart(ctx, youtube.ChartRequest{Region: c.region, PageToken: token})
		if err != nil {
			return err
		}
		r.queue.answered(r.visit)
		page := catalog.Page{Token: token, Next: got.Next, Videos: got.Videos,
			FetchedAt: r.Now(), Last: got.Next == "" || r.enough(read)}
		if page.Last && c.videos+len(page.Videos) == 0 {
			return errEmpty
		}
		if err = r.put(paid, page); errors.Is(err, errLoop) {
			return err // a fault of the upstream: abort would end the sweep for the catalogue's
		}
		if err = r.queue.abort(paid, err); err != nil || c.overtaken || page.Last {
			return err
		}
		token = got.Next
	}
}

func (r *reader) enough(pages int) bool { return r.Pages > 0 && pages >= r.Pages }

// outcomeOf returns the outcome of a region whose reading ended with err.
func outcomeOf(err error) Outcome {
	kind, upstream := youtube.KindOf(err)
	_, halted := errors.AsType[stopped](err)
	switch {
	case err == nil:
		return Complete
	case halted:
		return Skipped
	case upstream && kind == youtube.NoChart:
		return Unavailable
	case upstream && kind == youtube.Exhausted, errors.Is(err, quota.ErrExhausted):
		return Skipped
	case upstream: // may wrap the deadline of a slow request
		return Failed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Skipped
	}
	return Failed
}
