package catalog

import (
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/standin"
)

// realCharts calls use with each region's real charts, day by day, if they are installed.
func realCharts(t testing.TB, use func(region string, days [][]Video)) {
	t.Helper()
	data := standin.SharedData(os.Getenv("QUOTA_SHARED_DATA"), "trending")
	if data == "" {
		t.Log("no real charts here: generated ones only")
		return
	}
	charts, err := standin.LoadDir(data)
	must(t, err)
	for _, region := range charts.Regions(charts.Days() - 1) {
		var days [][]Video
		for day := range charts.Days() {
			if list := charts.Chart(region, day); list != nil {
				days = append(days, videosOf(t, list))
			}
		}
		use(region, days)
	}
}

func videosOf(t testing.TB, list []*standin.Video) (all []Video) {
	for _, v := range list {
		published, err := time.Parse(time.RFC3339, v.PublishedAt)
		must(t, err)
		all = append(all, Video{
			ID: v.ID, Title: v.Title, ChannelID: v.ChannelID, ChannelTitle: v.ChannelTitle,
			Category: v.CategoryID, Description: v.Description, Tags: slices.Clone(v.Tags),
			PublishedAt: published.UTC(),
			Views:       v.ViewCount, Likes: v.LikeCount, Comments: v.CommentCount,
		})
	}
	return all
}

// pagesOf splits a chart into pages of 50.
func pagesOf(list []Video, at time.Time) (pages []Page) {
	token := ""
	for chunk := range slices.Chunk(list, 50) {
		next := "after " + chunk[len(chunk)-1].ID
		pages = append(pages, Page{Token: token, Next: next, Videos: chunk, FetchedAt: at})
		token = next
	}
	last := &pages[len(pages)-1]
	last.Next, last.Last = "", true
	return pages
}

func TestRealCharts(t *testing.T) {
	realCharts(t, func(region string, days [][]Video) {
		c := open(t)
		for i, chart := range days {
			pages := pagesOf(chart, nine.AddDate(0, 0, i))
			id := begin(t, c, ChartKey{Region: region}, pages[0])
			for _, page := range pages[1:] {
				store(t, c, id, page)
			}
			checkReal(t, c, region, chart)
		}
	})
}

// checkReal checks that the current chart equals the list, each video at its first place and with
// the data of its last place.
func checkReal(t *testing.T, c *Catalog, region string, list []Video) {
	t.Helper()
	_, ranked, err := c.Current(t.Context(), ChartKey{Region: region}, 0)
	must(t, err)
	var want []Ranked
	first := map[string]int{}
	for i, v := range list {
		v.Tags = append([]string{}, v.Tags...) // never null
		if at, repeated := first[v.ID]; repeated {
			want[at].Video = v
			continue
		}
		first[v.ID] = len(want)
		want = append(want, Ranked{Rank: i + 1, Seen: Seen{Video: v}})
	}
	for i := range ranked {
		ranked[i].FirstSeenAt, ranked[i].FetchedAt = time.Time{}, time.Time{}
	}
	if !reflect.DeepEqual(ranked, want) {
		t.Errorf("the chart is not the one that was stored")
	}
}
