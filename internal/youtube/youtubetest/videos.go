package youtubetest

import (
	"strconv"
	"strings"
	"sync"
)

var videoParts = []string{"id", "snippet", "contentDetails", "statistics", "status", "topicDetails",
	"player",
	"localizations", "liveStreamingDetails", "recordingDetails", "paidProductPlacementDetails"}

// videosList answers by chart, one page, or by ids, all that are known.
func (s *Server) videosList(q query) (any, *apiError) {
	parts, e := q.parts(videoParts...)
	if e != nil {
		return nil, e
	}
	ids, e := q.ids()
	if e != nil {
		return nil, e
	}
	switch {
	case q.Get("chart") != "" && len(ids) > 0:
		return nil, errParameter("incompatibleParameters", "",
			"Incompatible parameters specified in the request: chart, id")
	case q.Get("chart") == "mostPopular":
		return s.chartPage(q, parts)
	case q.Get("chart") != "":
		return nil, errNoChart()
	case !q.Has("id"):
		return nil, errNoFilter("myRating, chart, id, idParam")
	}
	var items []item
	for _, v := range s.videosByID(ids) {
		items = append(items, v.item(parts))
	}
	return countedList("videoList", items), nil
}

func (s *Server) chartPage(q query, parts parts) (any, *apiError) {
	size, e := q.size(1)
	if e != nil {
		return nil, e
	}
	region, e := q.region("US")
	if e != nil {
		return nil, e
	}
	chart := inCategory(s.charts.Chart(region, s.day()), q.Get("videoCategoryId"))
	if len(chart) == 0 {
		return nil, errNoChart()
	}
	page, e := q.span(len(chart), size)
	if e != nil {
		return nil, e
	}
	shift := s.moves.next(region+"/"+q.Get("videoCategoryId")) * s.PageMove
	items := make([]item, 0, size)
	for i := page.from; i < page.to; i++ {
		items = append(items, chart[modulo(i-shift, len(chart))].item(parts))
	}
	return page.page(newList("videoList", items)), nil
}

// videosBatchGetStats answers with the counters of the ids that are known.
func (s *Server) videosBatchGetStats(q query) (any, *apiError) {
	parts, e := q.parts("id", "snippet", "contentDetails", "statistics")
	if e != nil {
		return nil, e
	}
	ids, e := q.ids()
	if e != nil {
		return nil, e
	}
	if len(ids) == 0 {
		return nil, errNoFilter("id")
	}
	items := []item{}
	for _, v := range s.videosByID(ids) {
		one := item{Kind: "youtube#videoStats", ID: v.ID}
		one.Snippet = parts.onePart("snippet", map[string]string{"publishTime": v.PublishedAt})
		one.Statistics = parts.onePart("statistics", v.counters(false))
		if v.Duration != "" {
			one.ContentDetails = parts.onePart("contentDetails",
				map[string]string{"duration": v.Duration})
		}
		items = append(items, one)
	}
	return newList("batchGetStats", items), nil
}

// videosByID are the known ones of the ids, each once, in the order asked.
func (s *Server) videosByID(ids []string) []*Video {
	var found []*Video
	seen := map[string]bool{}
	for _, id := range ids {
		if v := s.charts.Video(id, s.day()); v != nil && !seen[id] {
			found = append(found, v)
		}
		seen[id] = true
	}
	return found
}

func inCategory(chart []*Video, category string) []*Video {
	if category == "" || category == "0" {
		return chart
	}
	var some []*Video
	for _, v := range chart {
		if v.CategoryID == category {
			some = append(some, v)
		}
	}
	return some
}

// countedList is a list without pages: it holds all there is.
func countedList(resource string, items []item) *list {
	if items == nil {
		items = []item{}
	}
	l := newList(resource, items)
	l.PageInfo = &pageInfo{len(items), len(items)}
	return l
}

// moves counts how often a page of each chart was read.
type moves struct {
	mu   sync.Mutex
	read map[string]int
}

func (m *moves) next(chart string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read == nil {
		m.read = map[string]int{}
	}
	m.read[chart]++
	return m.read[chart] - 1
}

func modulo(a, n int) int { return ((a % n) + n) % n }

// item is the video with the parts that were asked for.
func (v *Video) item(parts parts) item {
	return item{
		Kind:           "youtube#video",
		ID:             v.ID,
		Snippet:        parts.onePart("snippet", v.snippet()),
		ContentDetails: parts.onePart("contentDetails", v.contentDetails()),
		Statistics:     parts.onePart("statistics", v.counters(true)),
		Status: parts.onePart("status", map[string]any{"uploadStatus": "processed",
			"privacyStatus": "public",
			"license":       "youtube", "embeddable": true, "publicStatsViewable": true,
			"madeForKids": false}),
	}
}

func (v *Video) snippet() map[string]any {
	s := map[string]any{
		"publishedAt":          v.PublishedAt,
		"channelId":            v.ChannelID,
		"title":                v.Title,
		"description":          v.Description,
		"thumbnails":           v.thumbnails(5),
		"channelTitle":         v.ChannelTitle,
		"categoryId":           v.CategoryID,
		"liveBroadcastContent": "none",
		"localized":            map[string]string{"title": v.Title, "description": v.Description},
	}
	if len(v.Tags) > 0 {
		s["tags"] = v.Tags
	}
	if v.language != "" {
		s["defaultAudioLanguage"], s["defaultLanguage"] = v.language, v.language
	}
	return s
}

func (v *Video) contentDetails() map[string]any {
	c := map[string]any{"dimension": "2d", "definition": "hd", "caption": "false",
		"licensedContent": true,
		"contentRating":   map[string]any{}, "projection": "rectangular"}
	if v.Duration != "" {
		c["duration"] = v.Duration
	}
	return c
}

// counters are decimal strings; those that are off are not there at all.
func (v *Video) counters(favorites bool) map[string]string {
	c := map[string]string{}
	set := func(name string, n *int64, off bool) {
		if n != nil && !off {
			c[name] = strconv.FormatInt(*n, 10)
		}
	}
	set("viewCount", v.ViewCount, false)
	set("likeCount", v.LikeCount, v.RatingsDisabled)
	set("commentCount", v.CommentCount, v.CommentsDisabled)
	if favorites {
		c["favoriteCount"] = "0"
	}
	return c
}

// thumbnails are the first n sizes.
func (v *Video) thumbnails(n int) map[string]any {
	sizes := []struct {
		name, file    string
		width, height int
	}{
		{"default", "default.jpg", 120, 90}, {"medium", "mqdefault.jpg", 320, 180},
		{"high", "hqdefault.jpg", 480, 360},
		{"standard", "sddefault.jpg", 640, 480}, {"maxres", "maxresdefault.jpg", 1280, 720},
	}
	all := map[string]any{}
	for _, s := range sizes[:n] {
		all[s.name] = map[string]any{
			"url": strings.TrimSuffix(v.Thumbnail, "default.jpg") + s.file, "width": s.width,
			"height": s.height}
	}
	return all
}
