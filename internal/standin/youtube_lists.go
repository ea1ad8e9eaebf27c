package standin

import (
	"bytes"
	"crypto/sha1"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// newList returns a list with its etag and those of its items. resource is like "videoList".
func newList(resource string, items []object) *list {
	l := &list{Kind: "youtube#" + resource + "Response", Items: append([]object{}, items...)}
	for _, item := range items {
		item["etag"] = etagOf(item)
	}
	l.Etag = etagOf(items)
	return l
}

// countedList returns a list without pages.
func countedList(resource string, items []object) *list {
	l := newList(resource, items)
	l.PageInfo = &pageInfo{len(items), len(items)}
	return l
}

// etagOf returns 27 characters that depend only on the content, like the API's bare etags.
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

// regionsTSV lists the regions the API serves: code, language of the generated charts, name.
//
//go:embed regions.tsv
var regionsTSV string

// categoriesTSV lists categories: ID, title, and whether an upload may use it.
//
//go:embed categories.tsv
var categoriesTSV string

var (
	regions    = sync.OnceValue(func() [][]string { return tsv(regionsTSV) })
	categories = sync.OnceValue(func() [][]string { return tsv(categoriesTSV) })
)

// served returns the methods that are served from the charts, with the parts that a request may
// ask for.
func served(s *YouTube) map[string]servedMethod {
	return map[string]servedMethod{
		"youtube.videos.list":          {videoParts, s.videosList},
		"youtube.videos.batchGetStats": {statsParts, s.videosBatchGetStats},
		"youtube.videoCategories.list": {plainParts, s.videoCategoriesList},
		"youtube.i18nRegions.list":     {plainParts, s.i18nRegionsList},
		"youtube.i18nLanguages.list":   {plainParts, s.i18nLanguagesList},
		"youtube.channels.list":        {channelParts, s.channelsList},
		"youtube.search.list":          {plainParts, s.searchList},
	}
}

type servedMethod struct {
	parts []string
	serve func(*query) any
}

var (
	plainParts = []string{"id", "snippet"}
	statsParts = []string{"id", "snippet", "contentDetails", "statistics"}
	videoParts = append(statsParts, "status", "topicDetails", "player", "localizations",
		"liveStreamingDetails", "recordingDetails", "paidProductPlacementDetails")
	channelParts = append(statsParts, "status", "brandingSettings", "topicDetails")
)

// videosList serves one page of a chart, or videos by ID.
func (s *YouTube) videosList(q *query) any {
	ids, chart := q.ids(), q.Get("chart")
	switch {
	case chart != "" && len(ids) > 0:
		q.fail(&problem{name: "incompatibleParameters"})
	case chart == "mostPopular":
		return s.chartPage(q)
	case chart != "":
		q.fail(&problem{name: "videoChartNotFound"})
	case !q.Has("id"):
		q.fail(noFilter("myRating, chart, id, idParam"))
	}
	return countedList("videoList", q.videos("video", s.videosByID(ids)))
}

func (s *YouTube) chartPage(q *query) any {
	size, region := q.size(1), q.region("US")
	category := q.Get("videoCategoryId")
	chart := s.Charts.Chart(region, s.day())
	if category != "" && category != "0" {
		other := func(v *Video) bool { return v.CategoryID != category }
		chart = slices.DeleteFunc(slices.Clone(chart), other)
	}
	n := len(chart)
	if n == 0 {
		q.fail(&problem{name: "videoChartNotFound"})
	}
	page := q.span(n, size)
	if q.err != nil {
		return nil
	}
	var videos []*Video
	shift := s.readsOf(region+"/"+category) * s.PageMove
	for i := page.from; i < page.to; i++ {
		videos = append(videos, chart[((i-shift)%n+n)%n])
	}
	return page.list("videoList", q.videos("video", videos))
}

// readsOf counts a page read of the chart, and returns the number of earlier reads.
func (s *YouTube) readsOf(chart string) int {
	defer s.locked()()
	s.reads[chart]++
	return s.reads[chart] - 1
}

// videosBatchGetStats returns the counters of the known IDs.
func (s *YouTube) videosBatchGetStats(q *query) any {
	ids := q.ids()
	if len(ids) == 0 {
		q.fail(noFilter("id"))
	}
	return newList("batchGetStats", q.videos("videoStats", s.videosByID(ids)))
}

// videosByID returns the known videos, each once, in the order requested.
func (s *YouTube) videosByID(ids []string) []*Video {
	var videos []*Video
	day := s.day()
	for _, id := range ids {
		if v := s.Charts.Video(id, day); v != nil && !slices.Contains(videos, v) {
			videos = append(videos, v)
		}
	}
	return videos
}

func (s *YouTube) videoCategoriesList(q *query) any {
	q.region("")
	ids := q.list("id")
	if len(ids) == 0 && !q.Has("regionCode") {
		q.fail(noFilter("id, regionCode"))
	}
	var items []object
	for _, c := range categories() {
		if len(ids) == 0 || slices.Contains(ids, c[0]) {
			items = append(items, q.item("videoCategory", object{"id": c[0], "title": c[1],
				"assignable": c[2] == "assignable"}))
		}
	}
	return newList("videoCategoryList", items)
}

func (s *YouTube) i18nRegionsList(q *query) any {
	var items []object
	for _, r := range regions() {
		items = append(items, q.item("i18nRegion", object{"id": r[0], "name": r[2]}))
	}
	return newList("i18nRegionList", items)
}

// i18nLanguagesList returns the languages of the generated charts, not all of the API's.
func (s *YouTube) i18nLanguagesList(q *query) any {
	names := strings.Fields("Arabic German English Spanish French Hebrew Hindi Japanese Korean " +
		"Portuguese Russian")
	var items []object
	for i, code := range languageCodes {
		items = append(items, q.item("i18nLanguage", object{"id": code, "name": names[i]}))
	}
	return newList("i18nLanguageList", items)
}

// channelsList returns the charts' channels by ID.
func (s *YouTube) channelsList(q *query) any {
	ids := q.ids()
	if len(ids) == 0 {
		q.fail(noFilter("id, managedByMe, categoryId, mine, mySubscribers, forUsername, forHandle"))
	}
	var items []object
	for _, id := range slices.Compact(ids) {
		of := s.Charts.find(s.day(), func(v *Video) bool { return v.ChannelID == id })
		if len(of) > 0 {
			items = append(items, q.item("channel", of[0].values()))
		}
	}
	return countedList("channelList", items)
}

// searchList returns the videos whose title contains every word of q.
func (s *YouTube) searchList(q *query) any {
	size, region := q.size(0), q.region("US")
	words := strings.Fields(strings.ToLower(q.Get("q")))
	videos := s.Charts.find(s.day(), func(v *Video) bool {
		title := strings.ToLower(v.Title)
		lacks := func(word string) bool { return !strings.Contains(title, word) }
		return !slices.ContainsFunc(words, lacks)
	})
	page := q.span(len(videos), size)
	l := page.list("searchList", q.videos("searchResult", videos[page.from:page.to]))
	l.RegionCode = region
	return l
}
