package standin

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

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

// route is a method served from the charts.
type route struct {
	parts []string // parts a request may ask for
	serve func(*YouTube, *query) any
}

// routes returns the served methods.
func routes() map[string]route {
	return map[string]route{
		"youtube.videos.list":          {videoParts, (*YouTube).videosList},
		"youtube.videos.batchGetStats": {statsParts, (*YouTube).videosBatchGetStats},
		"youtube.videoCategories.list": {plainParts, (*YouTube).videoCategoriesList},
		"youtube.i18nRegions.list":     {plainParts, (*YouTube).i18nRegionsList},
		"youtube.i18nLanguages.list":   {plainParts, (*YouTube).i18nLanguagesList},
		"youtube.channels.list":        {channelParts, (*YouTube).channelsList},
		"youtube.search.list":          {plainParts, (*YouTube).searchList},
	}
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
	ids := q.ids()
	switch {
	case q.Get("chart") != "" && len(ids) > 0:
		q.fail(googleError("incompatibleParameters"))
	case q.Get("chart") == "mostPopular":
		return s.chartPage(q)
	case q.Get("chart") != "":
		q.fail(googleError("videoChartNotFound"))
	case !q.Has("id"):
		q.fail(errNoFilter("myRating, chart, id, idParam"))
	}
	var items []object
	for _, v := range s.videosByID(ids) {
		items = append(items, q.item("video", v.values()))
	}
	return countedList("videoList", items)
}

func (s *YouTube) chartPage(q *query) any {
	size, region := q.size(1), q.region("US")
	category := q.Get("videoCategoryId")
	chart := s.Charts.Chart(region, s.day())
	if category != "" && category != "0" {
		other := func(v *Video) bool { return v.CategoryID != category }
		chart = slices.DeleteFunc(slices.Clone(chart), other)
	}
	if len(chart) == 0 {
		q.fail(googleError("videoChartNotFound"))
	}
	page := q.span(len(chart), size)
	if q.err != nil {
		return nil
	}
	shift := s.readsOf(region+"/"+category) * s.PageMove
	var items []object
	for i := page.from; i < page.to; i++ {
		n := len(chart)
		items = append(items, q.item("video", chart[((i-shift)%n+n)%n].values()))
	}
	return page.list("videoList", items)
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
		q.fail(errNoFilter("id"))
	}
	var items []object
	for _, v := range s.videosByID(ids) {
		items = append(items, q.item("videoStats", v.values()))
	}
	return newList("batchGetStats", items)
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
		q.fail(errNoFilter("id, regionCode"))
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
		q.fail(errNoFilter("id, managedByMe, categoryId, mine, mySubscribers, forUsername, " +
			"forHandle"))
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
	var items []object
	for _, v := range videos[page.from:page.to] {
		items = append(items, q.item("searchResult", v.values()))
	}
	l := page.list("searchList", items)
	l.RegionCode = region
	return l
}
