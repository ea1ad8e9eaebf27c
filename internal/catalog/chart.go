package catalog

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"
)

// ChartKey says which chart of the upstream is meant.
type ChartKey struct {
	// Region is an ISO 3166-1 alpha-2 country.
	Region string
	// Category is the upstream's category id; "" and AllCategories mean all of them.
	Category string
}

func (k ChartKey) category() string {
	return cmp.Or(k.Category, AllCategories)
}

// ChartID is a fetched chart's number in the catalogue. Later charts have larger ones.
type ChartID int64

// Chart is one chart as it was fetched at one time, without its videos.
type Chart struct {
	ID       ChartID
	Region   string
	Category string // never ""
	Run      string // that began it, or to which it was passed on

	StartedAt   time.Time // when its first page was fetched
	FetchedAt   time.Time // of its last page
	CompletedAt time.Time // zero until it is complete

	Pages  int // stored so far, at least one
	Videos int // on these pages, each counted once
	// NextPageToken fetches the page after them; "" means that there are no more.
	NextPageToken string
}

// Begin begins a chart with its first page, all or nothing: there is no chart without a page. It
// returns how many videos the chart has, as StorePage does. Until Complete, it is seen by Charts
// and Resume only. (Catalogues of earlier versions may hold charts whose first page never came.
// They are treated as if they were not there.)
//
// If the run has begun one after a chart that the caller knows, because another process has taken
// the run over, that one is returned, and nothing is stored. A caller that knows none passes 0.
func (c *Catalog) Begin(ctx context.Context, key ChartKey, run string, after ChartID,
	first Page) (id ChartID, added int, err error) {
	err = c.update(ctx, func(s *txn) error {
		err := s.row("run_chart", key.Region, key.category(), run, after).Scan(&id)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		result, err := s.exec("begin_chart", key.Region, key.category(), run,
			first.FetchedAt.UnixMicro())
		if err != nil {
			return err
		}
		number, err := result.LastInsertId()
		if err != nil {
			return err
		}
		id = ChartID(number)
		added, err = s.storePage(id, first)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("first page %q of a chart of %s: %w", first.Token, key.Region, err)
	}
	return id, added, nil
}

// Resume finds the chart of key that was begun last. ok says whether to resume it: it is not
// complete and was begun at or after notBefore, so that the pages of a chart are all of about the
// same time. Otherwise a new one is to begin. A chart without a NextPageToken has all its pages
// and waits only for Complete.
func (c *Catalog) Resume(ctx context.Context, key ChartKey,
	notBefore time.Time) (chart Chart, ok bool, err error) {
	err = c.view(ctx, func(s *txn) error {
		chart, err = scanChart(s.row("newest_chart", key.Region, key.category()))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return Chart{}, false, nil
	}
	ok = err == nil && chart.CompletedAt.IsZero() &&
		!chart.StartedAt.Before(notBefore.Truncate(time.Microsecond))
	return chart, ok, err
}

// PassOn makes a chart that one run has left half read another's. It reports whether it did: not
// when the chart is complete, or of a third run by now.
func (c *Catalog) PassOn(ctx context.Context, id ChartID, from,
	to string) (passed bool, err error) {
	err = c.update(ctx, func(s *txn) error {
		n, err := s.affect("pass_on", id, from, to)
		passed = n > 0
		return err
	})
	return passed, err
}

// Complete makes the chart the current one of its region and category, unless it is complete
// already. It has at least one page, be it an empty one.
func (c *Catalog) Complete(ctx context.Context, id ChartID, at time.Time) error {
	return c.update(ctx, func(s *txn) error { return s.complete(id, at) })
}

func (s *txn) complete(id ChartID, at time.Time) error {
	var region, category string
	err := s.row("complete_chart", id, at.UnixMicro()).Scan(&region, &category)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("chart %d, with at least one page: %w", id, ErrNotFound)
	}
	if err != nil {
		return err
	}
	_, err = s.exec("forget_unavailable", region, category)
	return err
}

// MarkUnavailable records that the upstream had no such chart when it was asked at that moment, or
// refused the region itself as invalid. A complete chart removes the record.
func (c *Catalog) MarkUnavailable(ctx context.Context, key ChartKey, at time.Time,
	invalid bool) error {
	return c.update(ctx, func(s *txn) error {
		_, err := s.exec("put_unavailable", key.Region, key.category(), at.UnixMicro(), invalid)
		return err
	})
}

// RegionState says how old the catalogue's knowledge of a region is.
type RegionState struct {
	Region string
	// CompletedAt is when its last complete chart of all categories was complete; zero when there
	// is none.
	CompletedAt time.Time
	// UnavailableAt is when the upstream last said that there is no chart, and has given none
	// since; zero otherwise.
	UnavailableAt time.Time
	// Invalid says that what it said was that it knows no such region.
	Invalid bool
}

// Staleness returns the state of each region, in the order given.
func (c *Catalog) Staleness(ctx context.Context, regions []string) ([]RegionState, error) {
	states := make([]RegionState, len(regions))
	err := c.view(ctx, func(s *txn) error {
		for i, region := range regions {
			var completed, unavailable sql.NullInt64
			var invalid bool
			err := s.row("staleness", region, AllCategories).Scan(&completed, &unavailable,
				&invalid)
			if err != nil {
				return err
			}
			states[i] = RegionState{region, moment(completed), moment(unavailable), invalid}
		}
		return nil
	})
	return states, err
}

// Charts returns the newest charts of key, newest first, half ones too. A limit of 0 means all.
func (c *Catalog) Charts(ctx context.Context, key ChartKey, limit int) (charts []Chart, err error) {
	err = c.view(ctx, func(s *txn) error {
		return s.each("charts", func(row scanner) error {
			chart, err := scanChart(row)
			charts = append(charts, chart)
			return err
		}, key.Region, key.category(), limitOrAll(limit))
	})
	return charts, err
}

// Ranked is a video's place in a chart. A rank that is missing between two others was a repeated
// video.
type Ranked struct {
	Rank int
	Seen
}

// Current returns the last complete chart of key and its first videos, with the names and counters
// they were last seen with. A limit of 0 means all. It wraps ErrNotFound when no chart of key was
// ever complete.
func (c *Catalog) Current(ctx context.Context, key ChartKey,
	limit int) (chart Chart, videos []Ranked, err error) {
	return c.At(ctx, key, lastMoment, limit)
}

var lastMoment = time.UnixMicro(math.MaxInt64)

// At returns the chart of key that was the current one at a moment, as Current does.
func (c *Catalog) At(ctx context.Context, key ChartKey, at time.Time,
	limit int) (chart Chart, videos []Ranked, err error) {
	err = c.view(ctx, func(s *txn) error {
		chart, err = scanChart(s.row("chart_at", key.Region, key.category(), at.UnixMicro()))
		if err != nil {
			return err
		}
		return s.each("ranked", func(row scanner) error {
			var place Ranked
			var err error
			place.Seen, err = scanSeen(row, &place.Rank)
			videos = append(videos, place)
			return err
		}, chart.ID, limitOrAll(limit))
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("a complete chart of %s: %w", key.Region, ErrNotFound)
	}
	return chart, videos, err
}

// History returns the complete charts of key that were begun before the one given, newest first;
// 0 means all of them. A limit of 0 means all.
func (c *Catalog) History(ctx context.Context, key ChartKey, before ChartID,
	limit int) (charts []Chart, err error) {
	if before == 0 {
		before = math.MaxInt64
	}
	err = c.view(ctx, func(s *txn) error {
		return s.each("chart_history", func(row scanner) error {
			chart, err := scanChart(row)
			charts = append(charts, chart)
			return err
		}, key.Region, key.category(), before, limitOrAll(limit))
	})
	return charts, err
}

// Places returns the videos of a chart by their places, the first at index 0. A place is "" where a
// repeated video left a gap or the video was purged.
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

func scanChart(row scanner) (Chart, error) {
	var chart Chart
	var started int64
	var fetched, completed sql.NullInt64
	err := row.Scan(&chart.ID, &chart.Region, &chart.Category, &chart.Run, &started, &fetched,
		&completed, &chart.Pages, &chart.Videos, &chart.NextPageToken)
	chart.StartedAt = micros(started)
	chart.FetchedAt, chart.CompletedAt = moment(fetched), moment(completed)
	return chart, err
}

// limitOrAll is the LIMIT of SQL, where a negative one means all.
func limitOrAll(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}

func micros(stamp int64) time.Time { return time.UnixMicro(stamp).UTC() }

// moment is zero for NULL.
func moment(stamp sql.NullInt64) time.Time {
	if !stamp.Valid {
		return time.Time{}
	}
	return micros(stamp.Int64)
}

// nullable is NULL for a zero moment.
func nullable(at time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: at.UnixMicro(), Valid: !at.IsZero()}
}
