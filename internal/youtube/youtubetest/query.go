package youtubetest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// query is the parameters of a request.
type query struct{ url.Values }

// list is a parameter that can be repeated, or hold commas, or both.
func (q query) list(name string) []string {
	var all []string
	for _, value := range q.Values[name] {
		for _, one := range strings.Split(value, ",") {
			if one = strings.TrimSpace(one); one != "" {
				all = append(all, one)
			}
		}
	}
	return all
}

// parts are the parts asked for, which must be there and be among the known.
func (q query) parts(known ...string) (parts, *apiError) {
	asked := q.list("part")
	if len(asked) == 0 {
		return nil, errParameter("missingRequiredParameter", "part", "Required parameter: part")
	}
	for _, p := range asked {
		if !slices.Contains(known, p) {
			return nil, errUnknownPart()
		}
	}
	return asked, nil
}

// parts are the parts of a resource that were asked for.
type parts []string

func (p parts) has(name string) bool { return slices.Contains(p, name) }

// onePart is the value if the part was asked for, else nothing.
func (p parts) onePart(name string, value any) any {
	if p.has(name) {
		return value
	}
	return nil
}

// size is maxResults, 5 by default, which must be between low and 50.
func (q query) size(low int) (int, *apiError) {
	text := q.Get("maxResults")
	if text == "" {
		return 5, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > 50 {
		return 0, &apiError{Code: http.StatusBadRequest, Domain: "global",
			Reason: "invalidParameter", Param: "maxResults",
			Message: fmt.Sprintf("Invalid value '%s'. Values must be within the range: [%d, 50]",
				text, low)}
	}
	return n, nil
}

// ids are the ids asked for, at most 50.
func (q query) ids() ([]string, *apiError) {
	ids := q.list("id")
	if len(ids) > 50 {
		return nil, errParameter("invalidFilters", "id",
			"The request specifies an invalid filter parameter.")
	}
	return ids, nil
}

// region is regionCode, or fallback when there is none.
func (q query) region(fallback string) (string, *apiError) {
	code := q.Get("regionCode")
	if code == "" {
		return fallback, nil
	}
	if _, ok := regionNamed(code); !ok {
		return "", errRegion()
	}
	return code, nil
}

// page is the page that the request asks for, from 1.
func (q query) page() int {
	size, e := q.size(0)
	offset, ok := parsePageToken(q.Get("pageToken"), size)
	if e != nil || !ok || size == 0 {
		return 1
	}
	return offset/size + 1
}

// span is a page of a list: what it spans and the tokens around it.
type span struct {
	from, to   int
	next, prev string
	info       *pageInfo
}

// span is where in a list of total the page lies that the request asks for.
func (q query) span(total, size int) (span, *apiError) {
	from := 0
	if token := q.Get("pageToken"); token != "" {
		var ok bool
		if from, ok = parsePageToken(token, size); !ok {
			return span{}, errPageToken()
		}
	}
	p := span{from: min(from, total), info: &pageInfo{total, size}}
	p.to = min(p.from+size, total)
	if p.to < total {
		p.next = pageToken(p.to, false)
	}
	if p.from > 0 {
		p.prev = pageToken(p.from, true)
	}
	return p, nil
}

func (p span) page(l *list) *list {
	l.NextPageToken, l.PrevPageToken, l.PageInfo = p.next, p.prev, p.info
	return l
}

// errNoFilter is what a call without any of its filters gets.
func errNoFilter(filters string) *apiError {
	return errParameter("missingRequiredParameter", "",
		"No filter selected. Expected one of: "+filters)
}
