package serve

import (
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// list is one page of a list.
type list[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next" doc:"the cursor of the next page; null on the last one"`
}

// Paging asks for one page of a list.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor string `query:"cursor" maxLength:"20" doc:"next of the previous page"`
}

// start returns the number in the cursor, 0 for the first page.
func (p Paging) start() (int64, error) {
	if p.Cursor == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(p.Cursor, 36, 64)
	if err != nil || n < 1 {
		return 0, huma.Error400BadRequest("cursor: send the next of the previous page")
	}
	return n, nil
}

// newList returns a page of the items, of which there is one more than limit if another page
// follows. after computes the cursor of that page from the last item shown.
func newList[T, U any](items []T, limit int, show func(T) U, after func(T) int64) list[U] {
	out := list[U]{Items: []U{}}
	if len(items) > limit {
		next := strconv.FormatInt(after(items[limit-1]), 36)
		out.Next, items = &next, items[:limit]
	}
	for _, item := range items {
		out.Items = append(out.Items, show(item))
	}
	return out
}
