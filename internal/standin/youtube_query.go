package standin

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// query reads a request's parameters. An invalid parameter ends the handler.
type query struct {
	url.Values
	call    *call
	parts   []string // requested parts of the resource
	paged   bool     // the list has pages
	perPage int
}

func newQuery(c *call) *query {
	q := &query{Values: c.r.URL.Query(), call: c}
	q.parts = q.list("part")
	return q
}

// failFilter sends the error of a call that has none of its filters.
func (q *query) failFilter(filters string) {
	q.call.fail("missingRequiredParameter filter", object{"filters": filters})
}

// list returns a parameter that may be repeated, contain commas, or both.
func (q *query) list(name string) []string {
	var all []string
	for _, value := range q.Values[name] {
		for one := range strings.SplitSeq(value, ",") {
			if one = strings.TrimSpace(one); one != "" {
				all = append(all, one)
			}
		}
	}
	return all
}

// size reads maxResults of a list with pages, by default 5, which must be between low and 50.
func (q *query) size(low int) {
	text := cmp.Or(q.Get("maxResults"), "5")
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > 50 {
		q.call.fail("invalidParameter", object{"value": text, "low": low})
	}
	q.paged, q.perPage = true, max(0, n)
}

// ids returns the requested IDs, at most 50. It requires one of the filters.
func (q *query) ids(filters string) []string {
	ids := q.list("id")
	if len(ids) > 50 {
		q.call.fail("invalidFilters", nil)
	} else if len(ids) == 0 && !q.Has("id") {
		q.failFilter(filters)
	}
	return ids
}

// region returns regionCode, or fallback if there is none.
func (q *query) region(fallback string) string {
	code := q.Get("regionCode")
	if code == "" {
		return fallback
	}
	if !slices.ContainsFunc(regions(), func(r []string) bool { return r[0] == code }) {
		q.call.fail("invalidRegionCode", nil)
	}
	return code
}

// pageNumber returns the number of the requested page, from 1.
func (q *query) pageNumber() int64 {
	n, _ := strconv.Atoi(cmp.Or(q.Get("maxResults"), "5"))
	offset, ok := parsePageToken(q.Get("pageToken"), n)
	if !ok || n <= 0 {
		return 1
	}
	return int64(offset/n + 1)
}

// A page token is base64url of a protobuf with two fields: field 1 is an offset in the list,
// field 2 is 0 for the page that begins there and 1 for the page that ends there. CDIQAA begins
// at 50, CDIQAQ ends at 50.

func pageToken(offset int, ends bool) string {
	b := binary.AppendUvarint([]byte{1 << 3}, uint64(offset))
	b = append(b, 2<<3, 0)
	if ends {
		b[len(b)-1] = 1
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parsePageToken returns the start of the token's page, for pages of the given size.
func parsePageToken(token string, size int) (offset int, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) < 4 || b[0] != 1<<3 {
		return 0, false
	}
	value, n := binary.Uvarint(b[1:])
	tail := b[1+max(n, 0):]
	if n <= 0 || value > 1<<20 || len(tail) != 2 || tail[0] != 2<<3 || tail[1] > 1 {
		return 0, false
	}
	if tail[1] == 1 {
		return max(0, int(value)-size), true
	}
	return int(value), true
}
