package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"quotabudget/internal/catalog"
	"quotabudget/internal/youtube/fault"
)

// keeper stores what the readers hand over, in their order.
type keeper struct {
	*Sweep
	results map[string]*Region
	err     error // the catalogue takes no more
}

func (k *keeper) keep(ctx context.Context, st step) error {
	result := k.results[st.region]
	if result == nil {
		result = &Region{Region: st.region, Outcome: Partial}
		k.results[st.region] = result
	}
	if st.page != nil {
		if err := k.store(ctx, st.page, result); err != nil {
			result.Outcome, result.err = Failed, err
			return fmt.Errorf("%w: %w", ErrCatalogue, err)
		}
		k.tell(Event{Region: st.region, Pages: result.Pages, Videos: result.Videos})
		return nil
	}
	return k.end(ctx, st.result, result)
}

// leave ends the readers when the keeper has panicked: they would wait for ever to hand something
// over.
func (k *keeper) leave(steps <-chan step, end context.CancelCauseFunc) {
	end(nil)
	for range steps {
	}
}

// drain takes what the readers still send after the catalogue has failed: of a region only what it
// was charged.
func (k *keeper) drain(st step) {
	if result := k.results[st.region]; result != nil && st.result != nil {
		result.Units = st.result.Units
	}
}

// store keeps one page; with the last one the chart becomes the current one of its region.
func (k *keeper) store(ctx context.Context, f *fetched, result *Region) (err error) {
	c := f.chart
	if c.taken.Load() {
		return nil
	}
	if f.page.FetchedAt.IsZero() { // cut off when only this was left to do
		result.Pages, result.Videos = c.pages, c.videos
		return k.Catalog.Complete(ctx, c.id, k.Now())
	}
	before := c.videos
	if c.id == 0 {
		c.pages = 1
		c.id, c.videos, err = k.Catalog.Begin(ctx, c.key, k.Run, f.page)
	} else {
		err = k.next(ctx, f)
	}
	if err != nil {
		return err
	}
	result.Pages, result.Videos = c.pages, c.videos
	k.Log.Debug("page stored", "region", c.key.Region, "page", c.pages, "videos", c.videos-before)
	return nil
}

// next stores a page that is not the chart's first.
func (k *keeper) next(ctx context.Context, f *fetched) error {
	c := f.chart
	added, err := k.Catalog.StorePage(ctx, c.id, f.page)
	c.pages++
	c.videos += added
	if added == 0 {
		return k.shared(ctx, f, err)
	}
	return nil
}

// shared settles a page that brought nothing new to its chart, or was refused. Another sweep may
// have resumed the chart, and have stored the page, or even completed the chart with fewer pages
// than this one would read.
func (k *keeper) shared(ctx context.Context, f *fetched, refusal error) error {
	c := f.chart
	charts, err := k.Catalog.Charts(ctx, c.key, 10)
	i := slices.IndexFunc(charts, func(known catalog.Chart) bool { return known.ID == c.id })
	if err != nil || i < 0 {
		return errors.Join(refusal, err)
	}
	c.pages, c.videos = charts[i].Pages, charts[i].Videos
	switch {
	case !charts[i].CompletedAt.IsZero():
		c.taken.Store(true)
		return nil
	case refusal == nil && f.page.Last:
		return k.Catalog.Complete(ctx, c.id, k.Now())
	}
	return refusal
}

// end settles what a region came to.
func (k *keeper) end(ctx context.Context, from, result *Region) error {
	result.Outcome, result.Units, result.Known, result.err = from.Outcome, from.Units, from.Known, from.err
	if result.Pages == 0 { // none came now, but there may be some of an earlier run
		result.Pages, result.Videos = from.Pages, from.Videos
	}
	if from.Outcome == Skipped && result.Pages > 0 {
		result.Outcome = Partial
	}
	if _, halted := errors.AsType[stopped](result.err); halted && result.Pages == 0 {
		result.err = nil // it was left out
	}
	if err := k.remember(ctx, from); err != nil {
		return fmt.Errorf("%w: %w", ErrCatalogue, err)
	}
	attrs := []any{"region", result.Region, "outcome", result.Outcome, "pages", result.Pages, "videos", result.Videos, "units", result.Units}
	if result.err != nil {
		attrs = append(attrs, "error", result.err)
	}
	k.Log.Info("region done", attrs...)
	k.tell(Event{Region: result.Region, Pages: result.Pages, Videos: result.Videos, Outcome: result.Outcome, Units: result.Units})
	return nil
}

// remember notes what need not be asked again soon: that the upstream has no chart of a region, or
// does not know it.
func (k *keeper) remember(ctx context.Context, from *Region) error {
	kind, upstream := fault.KindOf(from.err)
	switch {
	case !upstream || from.Known:
	case kind == fault.NoChart:
		return k.Catalog.MarkUnavailable(ctx, keyOf(from.Region), k.Now())
	case kind == fault.BadRegion:
		return k.Catalog.MarkInvalid(ctx, keyOf(from.Region), k.Now())
	}
	return nil
}

func (k *keeper) tell(e Event) {
	if k.Watch != nil {
		k.Watch(e)
	}
}
