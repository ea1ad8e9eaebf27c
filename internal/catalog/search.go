package catalog

import "context"

// Search returns the videos whose title, channel title, tags or description have all the words of
// query, best first: each word anywhere, whole or as the beginning of one, whatever its case and
// accents; in scripts without spaces between words any run of characters is found. Nothing in query
// is an operator. A limit of 0 means all; a query without a word finds nothing.
func (c *Catalog) Search(ctx context.Context, query string, limit int) (found []Seen, err error) {
	return c.SearchAfter(ctx, query, 0, limit)
}

// SearchAfter is Search without the first so many videos.
func (c *Catalog) SearchAfter(ctx context.Context, query string, skip,
	limit int) (found []Seen, err error) {
	expression := matchExpression(query)
	if expression == "" {
		return nil, nil
	}
	err = c.view(ctx, func(s *txn) error {
		return s.each("search", func(row scanner) error {
			var number int64
			video, err := scanSeen(row, &number)
			found = append(found, video)
			return err
		}, expression, limitOrAll(limit), skip)
	})
	return found, err
}
