package catalog

import "context"

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
