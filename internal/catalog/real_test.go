package catalog

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// realPlace is one line of a real chart.
type realPlace struct {
	VideoID      string    `json:"video_id"`
	Title        string    `json:"title"`
	ChannelID    string    `json:"channel_id"`
	ChannelTitle string    `json:"channel_title"`
	CategoryID   string    `json:"category_id"`
	PublishedAt  time.Time `json:"published_at"`
	Tags         []string  `json:"tags"`
	Views        *int64    `json:"view_count"`
	Likes        *int64    `json:"like_count"`
	Comments     *int64    `json:"comment_count"`
	Description  string    `json:"description"`
	Date         string    `json:"trending_date"`
}

func (p realPlace) video() Video {
	return Video{
		ID: p.VideoID, Title: p.Title, ChannelID: p.ChannelID, ChannelTitle: p.ChannelTitle,
		Category:    p.CategoryID,
		Description: p.Description, Tags: p.Tags, PublishedAt: p.PublishedAt.UTC(),
		Views: p.Views, Likes: p.Likes, Comments: p.Comments,
	}
}

// realFiles returns the files of real charts, none where they are not at hand.
func realFiles(t testing.TB) []string {
	t.Helper()
	data := os.Getenv("QUOTA_SHARED_DATA")
	for dir, err := os.Getwd(); data == "" && err == nil; dir = filepath.Dir(dir) {
		at := filepath.Join(dir, "shared", "data")
		if info, err := os.Stat(at); err == nil && info.IsDir() {
			data = at
		} else if dir == filepath.Dir(dir) {
			break
		}
	}
	files, err := filepath.Glob(filepath.Join(data, "trending", "*.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if data == "" || len(files) == 0 {
		t.Log("no real charts here: generated ones only")
		return nil
	}
	return files
}

// realCharts returns the charts of one file by their dates.
func realCharts(t testing.TB, file string) (dates []string, charts map[string][]Video) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	charts = map[string][]Video{}
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var place realPlace
		if err := json.Unmarshal(lines.Bytes(), &place); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(dates, place.Date) {
			dates = append(dates, place.Date)
		}
		charts[place.Date] = append(charts[place.Date], place.video())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(dates)
	return dates, charts
}

// pagesOf cuts a chart into pages of 50.
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
	for _, file := range realFiles(t) {
		region := strings.TrimSuffix(filepath.Base(file), ".jsonl.gz")
		t.Run(region, func(t *testing.T) {
			c := open(t)
			dates, charts := realCharts(t, file)
			for i, date := range dates {
				at := nine.AddDate(0, 0, i)
				pages := pagesOf(charts[date], at)
				id := begin(t, c, ChartKey{Region: region}, pages[0])
				for _, page := range pages[1:] {
					store(t, c, id, page)
				}
				checkReal(t, c, region, charts[date])
			}
		})
	}
}

// checkReal wants the current chart to be exactly this one, each video at its first place and as
// its last place has it.
func checkReal(t *testing.T, c *Catalog, region string, list []Video) {
	t.Helper()
	_, ranked, err := c.Current(t.Context(), ChartKey{Region: region}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []Ranked
	first := map[string]int{}
	for i, v := range list {
		v.Tags = append([]string{}, v.Tags...) // none is an empty list
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
