package quota

import (
	"context"
	"iter"
)

// EntryReader reads the log.
type EntryReader interface {
	Entries(ctx context.Context, q Query) ([]Entry, error)
}

// pageOfEntries is how many entries All has in memory at once.
const pageOfEntries = 2000

// All returns the entries that q picks, oldest first. They are read in pages, so that a long log
// takes little memory. An error is the last that it yields. q.Limit and q.First must be 0.
func All(ctx context.Context, l EntryReader, q Query) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		q.First = pageOfEntries
		for {
			page, err := l.Entries(ctx, q)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if len(page) < q.First {
				return
			}
			q.Since = page[len(page)-1].At
		}
	}
}
