package serve

import (
	"fmt"
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

// newList returns a list of the items, which caches may keep for the given seconds.
func newList[T, U any](seconds int, items []T, show func(T) U) *output[list[U]] {
	out := &output[list[U]]{Body: list[U]{Items: []U{}}}
	if seconds > 0 {
		out.CacheControl = fmt.Sprintf("max-age=%d", seconds)
	}
	for _, item := range items {
		out.Body.Items = append(out.Body.Items, show(item))
	}
	return out
}

// newPage returns a page of at most limit items. The caller passes one item more if another page
// follows. after computes the cursor of that page from the last item shown.
func newPage[T, U any](seconds int, items []T, limit int, show func(T) U,
	after func(T) int64) *output[list[U]] {
	out := newList(seconds, items[:min(len(items), limit)], show)
	if len(items) > limit {
		out.Body.Next = new(strconv.FormatInt(after(items[limit-1]), 36))
	}
	return out
}
