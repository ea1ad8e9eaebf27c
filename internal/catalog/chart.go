package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"
)

// ChartID is a fetched chart's number in the catalogue. Later charts have larger ones.
type ChartID int64

// Chart is one chart as it was fetched at one time, without its videos.
type Chart struct {
	ID     ChartID
	Region string
	Run    string // the run that began it, or took it over

	StartedAt   time.Time // when its first page was fetched
	FetchedAt   time.Time // when its last page was fetched
	CompletedAt time.Time // zero until it is complete

	Pages  int // number of stored pages, at least one
	Videos int // number of videos on these pages, each counted once
	// NextPageToken fetches the page after these; "" if there is none.
	NextPageToken string
}

// Begin begins a chart with its first page in one transaction, so there is no chart without a
// page. It returns the number of videos, as StorePage does. Until Complete, only Charts and
// Resume return the chart.
//
// If another process took over the run and began its chart later than the chart after, Begin
// returns that chart and stores nothing. Pass 0 for after if no chart is known.
func (c *Catalog) Begin(ctx context.Context, region string, run string, after ChartID,
	first Page) (id ChartID, added int, err error) {
	err = c.update(ctx, func(s *txn) error {
		err := s.row("run_chart", region, run, after).Scan(&id)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		err = s.row("begin_chart", region, run, first.FetchedAt.UnixMicro()).Scan(&id)
		if err != nil {
			return err
		}
		added, err = s.storePage(id, first)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("first page %q of a chart of %s: %w", first.Token, region, err)
	}
	return id, added, nil
}

// Resume returns the newest chart of a region. ok reports whether to resume it: it is incomplete,
// and was begun at or after notBefore, so that the pages of a chart were fetched at about the same
// time. Otherwise the caller begins a new one. An incomplete chart without a NextPageToken has all
// its pages and lacks only Complete.
func (c *Catalog) Resume(ctx context.Context, region string,
	notBefore time.Time) (chart Chart, ok bool, err error) {
	charts, err := c.Charts(ctx, region, 1)
	if err != nil || len(charts) == 0 {
		return Chart{}, false, err
	}
	chart = charts[0]
	return chart, chart.CompletedAt.IsZero() &&
		!chart.StartedAt.Before(notBefore.Truncate(time.Microsecond)), nil
}

// PassOn moves an incomplete chart from one run to another. It reports whether it did; it does not
// if the chart is complete or no longer belongs to the first run.
func (c *Catalog) PassOn(ctx context.Context, id ChartID, from,
	to string) (passed bool, err error) {
	err = c.update(ctx, func(s *txn) error {
		n, err := s.affect("pass_on", id, from, to)
		passed = n > 0
		return err
	})
	return passed, err
}

// Complete makes the chart the current one of its region. It does nothing if the chart is already
// complete.
func (c *Catalog) Complete(ctx context.Context, id ChartID, at time.Time) error {
	return c.update(ctx, func(s *txn) error { return s.complete(id, at) })
}

func (s *txn) complete(id ChartID, at time.Time) error {
	var region string
	err := s.row("complete_chart", id, at.UnixMicro()).Scan(&region)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("chart %d: %w", id, ErrNotFound)
	}
	if err != nil {
		return err
	}
	return s.exec("forget_unavailable", region)
}

// MarkUnavailable records that the upstream had no such chart at that moment, or refused the
// region as invalid. A complete chart removes the record.
func (c *Catalog) MarkUnavailable(ctx context.Context, region string, at time.Time,
	invalid bool) error {
	return c.exec(ctx, "put_unavailable", region, at.UnixMicro(), invalid)
}

// RegionState describes how recent the catalogue's data of a region is.
type RegionState struct {
	Region string
	// CompletedAt is when the last chart was completed, or zero.
	CompletedAt time.Time
	// UnavailableAt is when the upstream last reported that there is no chart, or zero if it has
	// returned one since.
	UnavailableAt time.Time
	// Invalid reports whether the upstream then refused the region itself.
	Invalid bool
}

// Staleness returns the state of each region, in the order given.
func (c *Catalog) Staleness(ctx context.Context, regions []string) ([]RegionState, error) {
	states := make([]RegionState, len(regions))
	err := c.view(ctx, func(s *txn) error {
		for i, region := range regions {
			state := &states[i]
			state.Region = region
			err := s.row("staleness", region).Scan(stamp{&state.CompletedAt},
				stamp{&state.UnavailableAt}, &state.Invalid)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return states, err
}

// Charts returns the charts of a region, incomplete ones included, newest first. A limit of 0 means
// all.
func (c *Catalog) Charts(ctx context.Context, region string, limit int) ([]Chart, error) {
	return c.charts(ctx, "charts", region, limitOrAll(limit))
}

func (c *Catalog) charts(ctx context.Context, query string, args ...any) (charts []Chart,
	err error) {
	err = c.view(ctx, func(s *txn) error {
		charts, err = list(s, query, scanChart, args...)
		return err
	})
	return charts, err
}

// Ranked is a video's place in a chart. A gap in the ranks is a repeated video.
type Ranked struct {
	Rank int
	Seen
}

// Current returns the last complete chart of a region and its first videos, with their most recent
// names and counters. A limit of 0 means all. The error wraps ErrNotFound if no chart of it was
// ever complete.
func (c *Catalog) Current(ctx context.Context, region string,
	limit int) (chart Chart, videos []Ranked, err error) {
	return c.At(ctx, region, lastMoment, limit)
}

var lastMoment = time.UnixMicro(math.MaxInt64)

// At is like Current, for the chart that was current at a given moment.
func (c *Catalog) At(ctx context.Context, region string, at time.Time,
	limit int) (chart Chart, videos []Ranked, err error) {
	err = c.view(ctx, func(s *txn) error {
		chart, err = scanChart(s.row("chart_at", region, at.UnixMicro()))
		if err != nil {
			return err
		}
		videos, err = list(s, "ranked", func(row scanner) (place Ranked, err error) {
			place.Seen, err = scanSeen(row, &place.Rank)
			return place, err
		}, chart.ID, limitOrAll(limit))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("a complete chart of %s: %w", region, ErrNotFound)
	}
	return chart, videos, err
}

// History returns the complete charts of a region begun before the given one, newest first. A chart
// of 0 and a limit of 0 mean all.
func (c *Catalog) History(ctx context.Context, region string, before ChartID,
	limit int) ([]Chart, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	return c.charts(ctx, "chart_history", region, before, limitOrAll(limit))
}

// Places returns the videos of a chart, the first place at index 0. A place is "" if a repeated
// video left a gap or the video was purged.
func (c *Catalog) Places(ctx context.Context, id ChartID) (videos []string, err error) {
	err = c.view(ctx, func(s *txn) error {
		return s.each("places", func(row scanner) error {
			var rank int
			var video string
			if err := row.Scan(&rank, &video); err != nil {
				return err
			}
			for len(videos) < rank {
				videos = append(videos, "")
			}
			videos[rank-1] = video
			return nil
		}, id)
	})
	return videos, err
}

func scanChart(row scanner) (c Chart, err error) {
	err = row.Scan(&c.ID, &c.Region, &c.Run, stamp{&c.StartedAt}, stamp{&c.FetchedAt},
		stamp{&c.CompletedAt}, &c.Pages, &c.Videos, &c.NextPageToken)
	return c, err
}

// limitOrAll converts a limit to SQL's LIMIT, where a negative one means all.
func limitOrAll(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}

// PagesWanted returns how many pages of a region's chart a sweep will request: as many as its last
// complete chart has, and at most maxPages. It returns maxPages if that chart was not read to its
// end, or if none was ever complete.
func (c *Catalog) PagesWanted(ctx context.Context, region string, maxPages int64) (int64, error) {
	charts, err := c.charts(ctx, "chart_at", region, lastMoment.UnixMicro())
	if err != nil || len(charts) == 0 || charts[0].NextPageToken != "" {
		return maxPages, err
	}
	return min(maxPages, max(1, int64(charts[0].Pages))), nil
}
