package serve

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/catalog"
)

const (
	perPage = 25
	// maxPages bounds the pages of a search, as in the API.
	maxPages = 20
	// maxQuery is the maximum length of a query in bytes.
	maxQuery = 200
)

type searchBody struct {
	Query          string
	Found          []catalog.Seen
	Page           int
	Previous, Next string // addresses; "" for none
}

// First returns the number of the first video on this page.
func (b searchBody) First() int { return (b.Page-1)*perPage + 1 }

func (p *site) search(ctx context.Context, r *http.Request, now time.Time) (page, error) {
	body := searchBody{Query: strings.TrimSpace(r.FormValue("q")), Page: 1}
	if len(body.Query) > maxQuery {
		return page{}, badRequest("q: write at most %d bytes", maxQuery)
	}
	if text := r.FormValue("page"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPages {
			return page{}, badRequest("page: write a number from 1 to %d", maxPages)
		}
		body.Page = n
	}
	matches, err := p.Catalog.Search(ctx, body.Query, (body.Page-1)*perPage, perPage+1)
	if err != nil {
		return page{}, err
	}
	if len(matches) > perPage {
		matches = matches[:perPage]
		if body.Page < maxPages {
			body.Next = searchPage(body.Query, body.Page+1)
		}
	}
	if body.Page > 1 {
		body.Previous = searchPage(body.Query, body.Page-1)
	}
	body.Found = matches
	return page{Title: "Search", Section: "search", Query: body.Query, Body: body}, nil
}

func searchPage(query string, n int) string {
	q := url.Values{"q": {query}}
	if n > 1 {
		q.Set("page", strconv.Itoa(n))
	}
	return "/search?" + q.Encode()
}
