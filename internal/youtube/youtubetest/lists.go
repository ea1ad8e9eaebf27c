package youtubetest

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// regionsTSV holds code, language of the generated charts, and name of the regions the API serves.
//
//go:embed regions.tsv
var regionsTSV string

// categoriesTSV holds id, title and whether an upload can be in it.
//
//go:embed categories.tsv
var categoriesTSV string

var (
	regions    = sync.OnceValue(func() [][]string { return tsv(regionsTSV) })
	categories = sync.OnceValue(func() [][]string { return tsv(categoriesTSV) })
)

func tsv(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows
}

func regionNamed(code string) ([]string, bool) {
	i := slices.IndexFunc(regions(), func(r []string) bool { return r[0] == code })
	if i < 0 {
		return nil, false
	}
	return regions()[i], true
}

// categoryOwner is the channel that all categories belong to, in the recorded answers too.
const categoryOwner = "UCBR8-60-B28hp2BmDPdntcQ"

func (s *Server) videoCategoriesList(q query) (any, *apiError) {
	parts, e := q.parts("id", "snippet")
	if e != nil {
		return nil, e
	}
	if _, e = q.region(""); e != nil {
		return nil, e
	}
	ids := q.list("id")
	if len(ids) == 0 && !q.Has("regionCode") {
		return nil, errNoFilter("id, regionCode")
	}
	items := []item{}
	for _, c := range categories() {
		if len(ids) > 0 && !slices.Contains(ids, c[0]) {
			continue
		}
		items = append(items, item{Kind: "youtube#videoCategory", ID: c[0],
			Snippet: parts.onePart("snippet",
				map[string]any{"channelId": categoryOwner, "title": c[1],
					"assignable": c[2] == "assignable"})})
	}
	return newList("videoCategoryList", items), nil
}

func (s *Server) i18nRegionsList(q query) (any, *apiError) {
	parts, e := q.parts("id", "snippet")
	if e != nil {
		return nil, e
	}
	items := []item{}
	for _, r := range regions() {
		items = append(items, item{Kind: "youtube#i18nRegion", ID: r[0],
			Snippet: parts.onePart("snippet", map[string]string{"gl": r[0], "name": r[2]})})
	}
	return newList("i18nRegionList", items), nil
}

// i18nLanguagesList serves the languages of the generated charts, not all of the API's.
func (s *Server) i18nLanguagesList(q query) (any, *apiError) {
	parts, e := q.parts("id", "snippet")
	if e != nil {
		return nil, e
	}
	names := [][2]string{{"ar", "Arabic"}, {"de", "German"}, {"en", "English"}, {"es", "Spanish"},
		{"fr", "French"},
		{"he", "Hebrew"}, {"hi", "Hindi"}, {"ja", "Japanese"}, {"ko", "Korean"},
		{"pt", "Portuguese"}, {"ru", "Russian"}}
	items := []item{}
	for _, n := range names {
		items = append(items, item{Kind: "youtube#i18nLanguage", ID: n[0],
			Snippet: parts.onePart("snippet", map[string]string{"hl": n[0], "name": n[1]})})
	}
	return newList("i18nLanguageList", items), nil
}

// channelsList answers by ids with the channels that the charts' videos are of.
func (s *Server) channelsList(q query) (any, *apiError) {
	parts, e := q.parts("id", "snippet", "contentDetails", "statistics", "status",
		"brandingSettings", "topicDetails")
	if e != nil {
		return nil, e
	}
	ids, e := q.ids()
	if e != nil {
		return nil, e
	}
	if len(ids) == 0 {
		return nil, errNoFilter("id, managedByMe, categoryId, mine, mySubscribers, forUsername, " +
			"forHandle")
	}
	var items []item
	for _, id := range slices.Compact(ids) {
		if v := s.charts.ofChannel(id, s.day()); v != nil {
			items = append(items, item{Kind: "youtube#channel", ID: id,
				Snippet: parts.onePart("snippet",
					map[string]any{"title": v.ChannelTitle, "description": "",
						"publishedAt": "2012-02-29T12:00:00Z",
						"thumbnails":  v.thumbnails(3),
						"localized": map[string]string{"title": v.ChannelTitle,
							"description": ""}})})
		}
	}
	return countedList("channelList", items), nil
}

// searchList finds the videos whose title holds every word of q.
func (s *Server) searchList(q query) (any, *apiError) {
	parts, e := q.parts("id", "snippet")
	if e != nil {
		return nil, e
	}
	size, e := q.size(0)
	if e != nil {
		return nil, e
	}
	region, e := q.region("US")
	if e != nil {
		return nil, e
	}
	found := s.charts.search(q.Get("q"), s.day())
	page, e := q.span(len(found), size)
	if e != nil {
		return nil, e
	}
	items := []item{}
	for _, v := range found[page.from:page.to] {
		items = append(items, item{Kind: "youtube#searchResult",
			ID:      map[string]string{"kind": "youtube#video", "videoId": v.ID},
			Snippet: parts.onePart("snippet", v.found())})
	}
	l := page.page(newList("searchList", items))
	l.RegionCode = region
	return l, nil
}

// found is the snippet of a search result.
func (v *Video) found() map[string]any {
	return map[string]any{"publishedAt": v.PublishedAt, "channelId": v.ChannelID, "title": v.Title,
		"description": v.Description, "thumbnails": v.thumbnails(3), "channelTitle": v.ChannelTitle,
		"liveBroadcastContent": "none", "publishTime": v.PublishedAt}
}
