package catalog

import (
	"context"
	"encoding/json"
)

// maxRanked is how many matching videos are ranked.
const maxRanked = 500

// Search returns the videos that have all words of query in their title, channel title, tags or
// description, best first. Case and accents do not matter. In scripts without spaces between
// words, any run of characters matches. query has no operators. Videos with whole words come
// before those with words that begin so. Within each group, videos with all words in the title
// come first, those that need the description last, and newer ones (by first sight) before older
// ones.
//
// A limit of 0 means all. With a limit, Search ranks only the newest 500 videos of each group (or
// limit, if larger), so that a common word takes little longer than a rare one. A query without a
// word finds nothing. The first skip videos are left out.
func (c *Catalog) Search(ctx context.Context, query string, skip,
	limit int) (videos []Seen, err error) {
	words := searchWords(query)
	if len(words) == 0 {
		return nil, nil
	}
	err = c.view(ctx, func(s *txn) error {
		numbers, err := s.search(words, skip, limit)
		if err != nil {
			return err
		}
		wanted, err := json.Marshal(numbers[min(skip, len(numbers)):])
		if err != nil {
			return err
		}
		videos, err = list(s, "numbered", func(row scanner) (Seen, error) {
			return scanSeen(row, new(int64))
		}, string(wanted))
		return err
	})
	return videos, err
}

// search returns the row IDs of the first skip+limit videos, best first.
func (s *txn) search(words []searchWord, skip, limit int) (numbers []int64, err error) {
	total, newest := -1, -1
	if limit > 0 {
		total, newest = skip+limit, max(maxRanked, limit)
	}
	whole, beginning := all(words, searchWord.whole), all(words, searchWord.beginning)
	numbers, err = s.ranked(whole, newest, total)
	if err != nil || len(numbers) == total || beginning == whole {
		return numbers, err
	}
	more, err := s.ranked(beginning, newest, total)
	if err != nil {
		return nil, err
	}
	isListed := make(map[int64]bool, len(numbers))
	for _, number := range numbers {
		isListed[number] = true
	}
	for _, number := range more {
		if !isListed[number] && len(numbers) != total {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}

func (s *txn) ranked(expression string, newest, limit int) (numbers []int64, err error) {
	return list(s, "search", func(row scanner) (n int64, err error) {
		err = row.Scan(&n)
		return n, err
	}, expression, newest, limit)
}
