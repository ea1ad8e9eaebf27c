package catalog

import (
	"context"
	"database/sql"
	"errors"
)

// PagesWanted returns how many of at most most pages a sweep of a region will request: those of
// its last complete chart. The chart may have more pages now if it was not read to its end, and
// any number if none was ever complete.
func (c *Catalog) PagesWanted(ctx context.Context, region string, maxPages int64) (int64, error) {
	var chart Chart
	err := c.view(ctx, func(s *txn) (err error) {
		chart, err = scanChart(s.row("chart_at", region, lastMoment.UnixMicro()))
		return err
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return maxPages, nil
	case err != nil || chart.NextPageToken != "":
		return maxPages, err
	}
	return min(maxPages, max(1, int64(chart.Pages))), nil
}
