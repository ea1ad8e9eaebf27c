package ingest

import (
	"context"
	"errors"
	"slices"

	"quotabudget/internal/catalog"
	"quotabudget/internal/youtube"
)

// put stores a page. With the last one the chart becomes its region's current chart.
func (r *reader) put(ctx context.Context, page catalog.Page) (err error) {
	c := r.chart
	var added int
	if c.id == 0 {
		if c.id, added, err = r.Catalog.Begin(ctx, c.region, r.Run, c.after, page); err != nil {
			return err
		}
	} else {
		added, err = r.Catalog.StorePage(ctx, c.id, page)
	}
	if added == 0 {
		return r.shared(ctx, page, err)
	}
	r.count(c.pages+1, c.videos+added)
	r.Log.Debug("page stored", "region", c.region, "page", c.pages, "videos", added)
	r.report(Event{Region: c.region, Pages: c.pages, Videos: c.videos})
	return nil
}

// shared handles a page that added nothing to its chart, or that the catalogue refused. Another
// sweep may have begun or resumed the chart and stored the page, or even completed the chart with
// fewer pages than this sweep would read.
func (r *reader) shared(ctx context.Context, page catalog.Page, refusal error) error {
	c := r.chart
	charts, err := r.Catalog.Charts(ctx, c.region, 10)
	i := slices.IndexFunc(charts, func(known catalog.Chart) bool { return known.ID == c.id })
	if err != nil || i < 0 {
		return errors.Join(refusal, err)
	}
	c.overtaken = !charts[i].CompletedAt.IsZero()
	if refusal == nil && !c.overtaken && charts[i].Pages < c.reading {
		return errLoop // an earlier sweep stored this page: its token leads back
	}
	r.count(charts[i].Pages, charts[i].Videos)
	switch {
	case c.overtaken:
		refusal = nil
	case refusal == nil && page.Last:
		refusal = r.Catalog.Complete(ctx, c.id, r.Now())
	}
	if refusal == nil {
		r.report(Event{Region: c.region, Pages: c.pages, Videos: c.videos})
	}
	return refusal
}

// end reports a region's outcome. It records if the upstream has no chart of the region or does
// not know it, so that it need not be asked again soon.
func (r *reader) end(ctx context.Context, v *visit) {
	if v.Outcome == Skipped && v.Pages > 0 {
		v.Outcome = Partial
	}
	if _, halted := errors.AsType[stopped](v.err); halted && v.Pages == 0 {
		v.err = nil // the region counts as skipped
	}
	kind, _ := youtube.KindOf(v.err)
	invalid, none := kind == youtube.BadRegion, kind == youtube.NoChart && v.err != errEmpty
	if !v.Known && (invalid || none) {
		ctx, region := context.WithoutCancel(ctx), v.Region.Region
		r.queue.abort(ctx, r.Catalog.MarkUnavailable(ctx, region, r.Now(), invalid))
	}
	attrs := []any{"region", v.Region.Region, "outcome", v.Outcome, "pages", v.Pages,
		"videos", v.Videos, "units", v.Units}
	if v.err != nil {
		attrs = append(attrs, "error", v.err)
	}
	r.Log.Info("region done", attrs...)
	r.report(Event{Region: v.Region.Region, Pages: v.Pages, Videos: v.Videos, Outcome: v.Outcome,
		Units: v.Units})
}

func (r *reader) report(e Event) {
	if r.Watch != nil {
		r.queue.watching.Lock()
		defer r.queue.watching.Unlock()
		r.Watch(e)
	}
}
