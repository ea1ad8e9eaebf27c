package catalog

import (
	"context"
	"database/sql"
	"errors"
)

// PagesWanted is how many pages a sweep of a region will ask for, of at most so many: those that
// its last complete chart had. A chart that was not read to its end may have more now, and one that
// was never complete any number.
func (c *Catalog) PagesWanted(ctx context.Context, region string, most int64) (int64, error) {
	var chart Chart
	err := c.view(ctx, func(s *txn) (err error) {
		chart, err = scanChart(s.row("chart_at", region, AllCategories,
			lastMoment.UnixMicro()))
		return err
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return most, nil
	case err != nil || chart.NextPageToken != "":
		return most, err
	}
	return min(most, max(1, int64(chart.Pages))), nil
}
