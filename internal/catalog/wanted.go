package catalog

import "context"

// PagesWanted returns how many of at most most pages a sweep of a region will request: those of
// its last complete chart. The chart may have more pages now if it was not read to its end, and
// any number if none was ever complete.
func (c *Catalog) PagesWanted(ctx context.Context, region string, maxPages int64) (int64, error) {
	charts, err := c.charts(ctx, "chart_at", region, lastMoment.UnixMicro())
	if err != nil || len(charts) == 0 || charts[0].NextPageToken != "" {
		return maxPages, err
	}
	return min(maxPages, max(1, int64(charts[0].Pages))), nil
}
