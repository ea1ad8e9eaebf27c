package standin

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// list is the body of a list response.
type list struct {
	Kind          string    `json:"kind"`
	Etag          string    `json:"etag"`
	Items         []object  `json:"items"`
	NextPageToken string    `json:"nextPageToken,omitempty"`
	PrevPageToken string    `json:"prevPageToken,omitempty"`
	RegionCode    string    `json:"regionCode,omitempty"`
	PageInfo      *pageInfo `json:"pageInfo,omitempty"`
}

type pageInfo struct {
	TotalResults   int `json:"totalResults"`
	ResultsPerPage int `json:"resultsPerPage"`
}

// newList returns a list without pages. kind is like "videoList".
func newList(kind string, items []object) *list {
	l := &list{Kind: "youtube#" + kind + "Response", Items: append([]object{}, items...)}
	for _, item := range l.Items {
		item["etag"] = etagOf(item)
	}
	l.Etag = etagOf(l.Items)
	return l
}

// etagOf returns 27 characters that depend only on the content, like the API's etags without their
// quotes.
func etagOf(v any) string {
	sum := sha1.Sum(encode(v, false))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// encode returns v as JSON without HTML escapes, optionally indented as by the API.
func encode(v any, indent bool) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if indent {
		e.SetIndent("", "  ")
	}
	_ = e.Encode(v) // our own types cannot fail
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// youTube sends a resource or a list, or 204 without one.
func (c *call) youTube(body any) {
	l, isList := body.(*list)
	switch {
	case body == nil:
		c.w.WriteHeader(http.StatusNoContent)
		return
	case isList && c.fault == "":
		c.header("Etag", strconv.Quote(l.Etag))
		if match := c.r.Header.Get("If-None-Match"); strings.Trim(match, `"`) == l.Etag {
			c.w.WriteHeader(http.StatusNotModified)
			return
		}
	case isList && c.fault == "repeat" && len(l.Items) > 1:
		l.Items[len(l.Items)-1] = l.Items[0]
	}
	c.ok(body)
}

// html sends an error page of Google's front end.
func (c *call) html(status int, what string) {
	c.header("Content-Type", "text/html; charset=UTF-8")
	c.w.WriteHeader(status)
	_, _ = fmt.Fprintf(c.w, "<!DOCTYPE html>\n<html lang=en>\n  <meta charset=utf-8>\n  "+
		"<title>Error %d (%s)!!1</title>\n"+
		"  <p><b>%d.</b> <ins>That’s an error.</ins>\n", status, what, status)
}

// regions returns the regions that the API serves: code, language and name.
func regions() [][]string { return specs()[youTubeName].Regions }

// servedMethod is a method whose responses are made from the charts.
type servedMethod struct {
	parts      []string                // valid values of the parameter part
	kind, item string                  // kind of the list, and document of its items
	counted    bool                    // the list has the number of its items
	find       func(q *query) []object // values of the items; a list has pages if it calls query.size
}

// served returns the served methods by ID.
func (s *YouTube) served() map[string]servedMethod {
	statsParts := []string{"id", "snippet", "contentDetails", "statistics"}
	videoParts := append(statsParts, "status", "topicDetails", "player", "localizations",
		"liveStreamingDetails", "recordingDetails", "paidProductPlacementDetails")
	channelParts := append(statsParts, "status", "brandingSettings", "topicDetails")
	return map[string]servedMethod{
		"youtube.videos.list": {videoParts, "videoList", "video", true, s.videos},
		"youtube.videos.batchGetStats": {statsParts, "batchGetStats", "videoStats", false,
			s.videosByID},
		"youtube.videoCategories.list": {statsParts[:2], "videoCategoryList", "videoCategory", false,
			videoCategories},
		"youtube.i18nRegions.list": {statsParts[:2], "i18nRegionList", "i18nRegion", false,
			i18nRegions},
		"youtube.channels.list": {channelParts, "channelList", "channel", true, s.channels},
		"youtube.search.list":   {statsParts[:2], "searchList", "searchResult", false, s.search},
	}
}

// list returns the response of a method: the requested page, or all items if it has no pages.
func (m servedMethod) list(q *query) *list {
	if len(q.parts) == 0 {
		q.call.fail("missingRequiredParameter part", nil)
	}
	for _, p := range q.parts {
		if !slices.Contains(m.parts, p) {
			q.call.fail("unknownPart", nil)
		}
	}
	found := m.find(q)
	from, to := 0, len(found)
	if q.paged {
		token := q.Get("pageToken")
		start, ok := parsePageToken(token, q.perPage)
		if token != "" && !ok {
			q.call.fail("invalidPageToken", nil)
		}
		from = min(start, to)
		to = min(from+q.perPage, to)
	}
	var items []object
	for _, values := range found[from:to] {
		item := q.call.doc(m.item, values)
		maps.DeleteFunc(item, func(name string, _ any) bool {
			return name != "kind" && name != "id" && !slices.Contains(q.parts, name)
		})
		items = append(items, item)
	}
	l := newList(m.kind, items)
	if to < len(found) {
		l.NextPageToken = pageToken(to, false)
	}
	if from > 0 {
		l.PrevPageToken = pageToken(from, true)
	}
	switch {
	case q.paged:
		l.PageInfo = &pageInfo{len(found), q.perPage}
	case m.counted:
		l.PageInfo = &pageInfo{len(found), len(found)}
	}
	if m.kind == "searchList" {
		l.RegionCode = q.region("US")
	}
	return l
}

// videos finds the videos of a chart, or those by ID.
func (s *YouTube) videos(q *query) []object {
	switch chart := q.Get("chart"); {
	case chart != "" && q.Has("id"):
		q.call.fail("incompatibleParameters", nil)
	case chart == "mostPopular":
		return s.chart(q)
	case chart != "":
		q.call.fail("videoChartNotFound", nil)
	case !q.Has("id"):
		q.failFilter("myRating, chart, id, idParam")
	}
	return s.videosByID(q)
}

func (s *YouTube) chart(q *query) (videos []object) {
	q.size(1)
	region, category := q.region("US"), q.Get("videoCategoryId")
	for _, v := range s.Charts.Chart(region, s.day()) {
		if category == "" || category == "0" || category == v.CategoryID {
			videos = append(videos, v.values())
		}
	}
	if len(videos) == 0 {
		q.call.fail("videoChartNotFound", nil)
	} else if s.PageMove > 0 {
		unlock := s.locked() // each page read moves the chart further down
		down := s.reads[region+"/"+category] * s.PageMove % len(videos)
		s.reads[region+"/"+category]++
		unlock()
		videos = slices.Concat(videos[len(videos)-down:], videos[:len(videos)-down])
	}
	return videos
}

// videosByID finds the known videos, each once, in the order requested.
func (s *YouTube) videosByID(q *query) (videos []object) {
	ids := q.ids("id")
	for i, id := range ids {
		if v := s.Charts.Video(id, s.day()); v != nil && !slices.Contains(ids[:i], id) {
			videos = append(videos, v.values())
		}
	}
	return videos
}

// search finds the videos whose title contains every word of q.
func (s *YouTube) search(q *query) []object {
	q.size(0)
	words := strings.Fields(strings.ToLower(q.Get("q")))
	return s.Charts.find(s.day(), func(v *Video) bool {
		title := strings.ToLower(v.Title)
		lacks := func(word string) bool { return !strings.Contains(title, word) }
		return !slices.ContainsFunc(words, lacks)
	})
}

// channels finds the charts' channels by ID.
func (s *YouTube) channels(q *query) (list []object) {
	const filters = "id, managedByMe, categoryId, mine, mySubscribers, forUsername, forHandle"
	for _, id := range slices.Compact(q.ids(filters)) {
		videos := s.Charts.find(s.day(), func(v *Video) bool { return v.ChannelID == id })
		list = append(list, videos[:min(1, len(videos))]...)
	}
	return list
}

func videoCategories(q *query) (list []object) {
	ids := q.list("id")
	if q.region(""); len(ids) == 0 && !q.Has("regionCode") {
		q.failFilter("id, regionCode")
	}
	for _, c := range q.call.s.api.Categories {
		if len(ids) == 0 || slices.Contains(ids, c[0]) {
			list = append(list, object{"id": c[0], "title": c[1],
				"assignable": c[2] == "assignable"})
		}
	}
	return list
}

func i18nRegions(*query) (list []object) {
	for _, r := range regions() {
		list = append(list, object{"id": r[0], "name": r[2]})
	}
	return list
}
