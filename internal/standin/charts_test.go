package standin

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/api/youtube/v3"
)

func idsOf(chart []*Video) (ids []string) {
	for _, v := range chart {
		ids = append(ids, v.ID)
	}
	return ids
}

func TestChartDefaultsAndNeighbours(t *testing.T) {
	c := client(t, start(t, &YouTube{}))
	call := func(token string) *youtube.VideoListResponse {
		l, err := c.Videos.List([]string{"id"}).Chart("mostPopular").PageToken(token).Do()
		must(t, err)
		return l
	}
	first := call("")
	if len(first.Items) != 5 || first.NextPageToken != "CAUQAA" || first.PrevPageToken != "" {
		t.Errorf("first page: %d items, next %q, prev %q", len(first.Items), first.NextPageToken,
			first.PrevPageToken)
	}
	second := call(first.NextPageToken)
	if second.PrevPageToken != "CAUQAQ" || second.NextPageToken != "CAoQAA" {
		t.Errorf("second page: next %q, prev %q", second.NextPageToken, second.PrevPageToken)
	}
	if back := call(second.PrevPageToken); back.Etag != first.Etag {
		t.Error("the page before the second is not the first")
	}
	if far := call(pageToken(500, false)); len(far.Items) != 0 || far.NextPageToken != "" {
		t.Error("beyond the end there are items")
	}
}

func TestVideosByID(t *testing.T) {
	charts := defaultCharts()
	known := idsOf(charts.Chart("JP", 1))
	c := client(t, start(t, &YouTube{Charts: charts}))
	asked := []string{known[2], "xxxxxxxxxxx", known[0], known[2]}
	l, err := c.Videos.List([]string{"snippet,statistics"}).Id(asked...).Do()
	must(t, err)
	if len(l.Items) != 2 || l.Items[0].Id != known[2] || l.Items[1].Id != known[0] ||
		l.PageInfo.TotalResults != 2 {
		t.Fatalf("%d items of 2 known ids", len(l.Items))
	}
	if v := l.Items[0]; v.Snippet == nil || v.Statistics == nil || v.ContentDetails != nil ||
		v.Status != nil {
		t.Errorf("parts are not those asked for: %+v", v)
	}
	if want := charts.Video(known[2], 1); l.Items[0].Snippet.Title != want.Title {
		t.Errorf("title %q, want %q", l.Items[0].Snippet.Title, want.Title)
	}
}

func TestOtherLists(t *testing.T) {
	charts := defaultCharts()
	s := &YouTube{Charts: charts}
	c := client(t, start(t, s))
	some := charts.Chart("BR", 1)[0]

	stats, err := c.Videos.BatchGetStats().Id(some.ID, "nope").Part("statistics").Do()
	if err != nil || len(stats.Items) != 1 || stats.Items[0].Statistics == nil {
		t.Errorf("batchGetStats: %v %+v", err, stats)
	}
	cats, err := c.VideoCategories.List([]string{"snippet"}).RegionCode("BR").Do()
	if err != nil || len(cats.Items) != 19 || cats.Items[2].Snippet.Title != "Music" {
		t.Errorf("videoCategories: %v", err)
	}
	regions, err := c.I18nRegions.List([]string{"snippet"}).Do()
	if err != nil || len(regions.Items) != 110 {
		t.Errorf("i18nRegions: %v", err)
	}
	channels, err := c.Channels.List([]string{"snippet"}).Id(some.ChannelID, "UCnone").Do()
	if err != nil || len(channels.Items) != 1 || channels.Items[0].Id != some.ChannelID {
		t.Errorf("channels: %v", err)
	}
	if l, err := c.Activities.List([]string{"snippet"}).ChannelId("x").Do(); err != nil ||
		len(l.Items) != 0 {
		t.Errorf("a method that is not served: %v", err)
	}
	got := s.Counts()
	if got.Units["default"] != 4 || got.Units["video_batch_get_stats"] != 1 ||
		got.ByMethod["youtube.channels.list"] != 1 {
		t.Errorf("counts %+v", got)
	}
}

func TestSearch(t *testing.T) {
	s := &YouTube{}
	c := client(t, start(t, s))
	found := 0
	err := c.Search.List([]string{"snippet"}).Q("Самовар").MaxResults(3).Pages(t.Context(),
		func(l *youtube.SearchListResponse) error {
			for _, r := range l.Items {
				found++
				if !strings.Contains(r.Snippet.Title, "самовар") || r.Id.VideoId == "" {
					t.Errorf("found %q", r.Snippet.Title)
				}
			}
			return nil
		})
	if err != nil || found < 4 {
		t.Errorf("found %d: %v", found, err)
	}
	if c := s.Counts(); c.Units["search_list"] != int64(found+2)/3 || c.Units["default"] != 0 {
		t.Errorf("counts %+v for %d found", c.Units, found)
	}
}

// writeCharts writes lines into a file for LoadDir, and returns its folder.
func writeCharts(t *testing.T, lines ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, strings.Join(lines, "\n"))
	z.Close()
	err := os.WriteFile(filepath.Join(dir, "BR.jsonl.gz"), packed.Bytes(), 0o600)
	must(t, err)
	return dir
}

func TestLoadDir(t *testing.T) {
	generated := Generator{Totals: map[string]int{"BR": 60}}.Charts()
	var lines []string
	for day := range 2 {
		for _, v := range slices.Backward(generated.Chart("BR", day)) {
			lines = append(lines, strings.TrimSpace(string(encode(v, false))))
		}
	}
	charts, err := LoadDir(writeCharts(t, lines...))
	must(t, err)
	if charts.Days() != 2 || !slices.Equal(charts.Regions(1), []string{"BR"}) {
		t.Fatalf("%d days, regions %v", charts.Days(), charts.Regions(1))
	}
	url := start(t, &YouTube{Charts: charts, DaysBack: 1})
	var got []string
	list := client(t, url).Videos.List([]string{"id"}).Chart("mostPopular").RegionCode("BR")
	must(t, list.MaxResults(50).Pages(t.Context(), func(l *youtube.VideoListResponse) error {
		for _, v := range l.Items {
			got = append(got, v.Id)
		}
		return nil
	}))
	if !slices.Equal(got, idsOf(generated.Chart("BR", 0))) {
		t.Error("the chart of the day before is not what was written")
	}
	if status, body := status(t, url+chartQuery+"AU"); status != 404 ||
		!strings.Contains(body, "videoChartNotFound") {
		t.Errorf("a region without a file: %d %s", status, body)
	}
}

func TestLoadDirErrors(t *testing.T) {
	if _, err := LoadDir(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no charts") {
		t.Errorf("empty folder: %v", err)
	}
	for _, wrong := range []string{`{"video_id":"a","region":"BR"`, `{"video_id":"a","region":"BR"}`,
		`{"region":"BR","trending_date":"2026-01-01"}`} {
		const good = `{"video_id":"a","region":"BR","trending_date":"2026-01-01","rank":1}`
		_, err := LoadDir(writeCharts(t, good, wrong))
		if err == nil || !strings.Contains(err.Error(), "BR.jsonl.gz:2:") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestGeneratorIsDeterministic(t *testing.T) {
	a, b := Generator{}.Charts(), Generator{}.Charts()
	if !reflect.DeepEqual(a, b) {
		t.Error("the charts of two runs differ")
	}
	if slices.Equal(idsOf(a.Chart("US", 0)), idsOf(a.Chart("US", 1))) {
		t.Error("the chart of two days is the same")
	}
	if got := idsOf(a.Chart("US", 1))[:3]; !slices.Equal(got, firstThree) {
		t.Errorf("the default charts begin with %q", got)
	}
}

// firstThree pins the default charts: they must be the same on every machine and in every
// release.
var firstThree = []string{"--MfRhtyafY", "bU8m-i9b5hQ", "byA_-jA5Fzo"}

func TestGeneratedCharts(t *testing.T) {
	charts := defaultCharts()
	regionsOf := map[string]int{}
	odd := oddities()
	for _, region := range charts.Regions(1) {
		chart := charts.Chart(region, 1)
		if len(chart) < 16 || len(chart) > 200 {
			t.Errorf("%s: %d videos", region, len(chart))
		}
		ids := idsOf(chart)
		slices.Sort(ids)
		if len(slices.Compact(ids)) != len(chart) {
			t.Errorf("%s: a repeated id", region)
		}
		for _, v := range chart {
			regionsOf[v.ID]++
			maps.DeleteFunc(odd, func(_ string, matches func(*Video) bool) bool { return matches(v) })
		}
	}
	for what := range odd {
		t.Errorf("the charts have no %s", what)
	}
	most := 0
	for _, n := range regionsOf {
		most = max(most, n)
	}
	if most < 50 {
		t.Errorf("no video charts in more than %d regions", most)
	}
	for region, want := range map[string]int{"US": 200, "GB": 200, "DE": 200, "FR": 200,
		"BR": 200, "CA": 200, "IN": 171, "AU": 137} {
		if got := len(charts.Chart(region, 1)); got != want {
			t.Errorf("%s: %d videos, want %d", region, got, want)
		}
	}
	if got := (Generator{Totals: map[string]int{"AU": 0}}).Charts().Chart("AU", 1); got != nil {
		t.Errorf("AU has %d videos", len(got))
	}
}

// oddities lists properties that make videos hard to handle. The default charts must contain
// each.
func oddities() map[string]func(*Video) bool {
	has := func(chars string) func(*Video) bool {
		return func(v *Video) bool { return strings.ContainsAny(v.Title, chars) }
	}
	return map[string]func(*Video) bool{
		"-id":         func(v *Video) bool { return v.ID[0] == '-' },
		"_id":         func(v *Video) bool { return v.ID[0] == '_' },
		"no comments": func(v *Video) bool { return v.CommentCount == nil },
		"no likes":    func(v *Video) bool { return v.LikeCount == nil },
		"no views":    func(v *Video) bool { return v.ViewCount == nil },
		"no tags":     func(v *Video) bool { return len(v.Tags) == 0 },
		"132 tags":    func(v *Video) bool { return len(v.Tags) == 132 },
		"empty tag":   func(v *Video) bool { return slices.Contains(v.Tags, "") },
		"CR":          has("\r"), "combining": has("\u0301"), "bidi": has("\u202b"),
		"ZWJ": has("\u200d"), "Cyrillic": has("иа"), "Arabic": has("ال"), "Devanagari": has("का"),
		"Hiragana": has("のき"), "Hangul": has("의는"), "Hebrew": has("של"),
	}
}

// TestDisabledCounters: a counter that is turned off is omitted, even if it is known.
func TestDisabledCounters(t *testing.T) {
	one := int64(1)
	v := (&Video{ViewCount: &one, LikeCount: &one, CommentCount: &one, CommentsDisabled: true,
		RatingsDisabled: true}).values()
	if v["views"] != "1" || v["likes"] != "" || v["comments"] != "" {
		t.Error(v)
	}
}
