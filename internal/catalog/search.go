package catalog

import (
	"context"
	"encoding/json"
	"slices"
)

const (
	// mostRanked is how many of the videos that match are ranked.
	mostRanked = 500
	// mostBeginnings is how many words that begin as those typed are looked for, if they are
	// common.
	mostBeginnings = 8
	// sampled is how many of the newest videos say which words are common.
	sampled = 300
)

// Search returns the videos whose title, channel title, tags or description have all the words of
// query, best first: each word anywhere, whatever its case and accents; in scripts without spaces
// between words any run of characters is found. Nothing in query is an operator. Videos that have
// the words whole come before those that have words beginning so. Of either, those that have them
// all in the title come first, and those that need the description last; among equals the newest,
// by when they were first seen.
//
// A limit of 0 means all. With another, only the newest 500 videos (or limit, if that is more) of
// either are ranked, and where words that begin so are very common, only the most common ones are
// looked for, so that a common word takes little longer than a rare one. A query without a word
// finds nothing.
func (c *Catalog) Search(ctx context.Context, query string, limit int) (found []Seen, err error) {
	return c.SearchAfter(ctx, query, 0, limit)
}

// SearchAfter is Search without the first so many videos.
func (c *Catalog) SearchAfter(ctx context.Context, query string, skip,
	limit int) (found []Seen, err error) {
	words := searchWords(query)
	if len(words) == 0 {
		return nil, nil
	}
	err = c.view(ctx, func(s *txn) error {
		numbers, err := c.search(s, words, skip, limit)
		if err != nil {
			return err
		}
		found, err = s.numbered(numbers[min(skip, len(numbers)):])
		return err
	})
	return found, err
}

// search returns the numbers of the first videos found, as many as skip and limit say.
func (c *Catalog) search(s *txn, words []searchWord, skip, limit int) (found []int64, err error) {
	most, newest := -1, -1
	if limit > 0 {
		most, newest = skip+limit, max(mostRanked, limit)
	}
	whole, beginning := all(words, searchWord.whole), all(words, searchWord.beginning)
	found, err = s.ranked(whole, newest, most)
	if err != nil || len(found) == most || beginning == whole {
		return found, err
	}
	if limit > 0 {
		known, err := c.common(s)
		if err != nil {
			return nil, err
		}
		each := max(2, mostBeginnings/len(words))
		beginning = all(words, func(w searchWord) string { return known.beginning(w, each) })
	}
	more, err := s.ranked(beginning, newest, most)
	if err != nil {
		return nil, err
	}
	had := make(map[int64]bool, len(found))
	for _, number := range found {
		had[number] = true
	}
	for _, number := range more {
		if !had[number] && len(found) != most {
			found = append(found, number)
		}
	}
	return found, nil
}

// common returns the words of the newest videos, read again when there are many newer ones.
func (c *Catalog) common(s *txn) (*sample, error) {
	var newest int64
	if err := s.row("newest_video").Scan(&newest); err != nil {
		return nil, err
	}
	if known := c.known.Load(); known != nil && newest < known.newest+sampled/3 {
		return known, nil
	}
	known := &sample{newest: newest}
	err := s.each("newest_texts", func(row scanner) error {
		var texts [4]string
		err := row.Scan(&texts[0], &texts[1], &texts[2], &texts[3])
		for _, text := range texts {
			known.add(text)
		}
		known.videos++
		return err
	}, sampled)
	if err != nil {
		return nil, err
	}
	slices.Sort(known.words)
	c.known.Store(known)
	return known, nil
}

func (s *txn) ranked(expression string, newest, limit int) (numbers []int64, err error) {
	err = s.each("search", func(row scanner) error {
		var n int64
		err := row.Scan(&n)
		numbers = append(numbers, n)
		return err
	}, expression, newest, limit)
	return numbers, err
}

// numbered returns the videos with these numbers, in this order.
func (s *txn) numbered(numbers []int64) (videos []Seen, err error) {
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	err = s.each("numbered", func(row scanner) error {
		var number int64
		video, err := scanSeen(row, &number)
		videos = append(videos, video)
		return err
	}, string(list))
	return videos, err
}
