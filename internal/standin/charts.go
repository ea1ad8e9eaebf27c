package standin

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Charts holds the charts of regions on one or more days. It is immutable.
type Charts struct {
	days []chartDay // oldest first
}

type chartDay struct {
	date    string
	regions map[string][]*Video // in order of rank
	byID    map[string]*Video
}

// Days returns the number of days.
func (c *Charts) Days() int { return len(c.days) }

// at returns a day, without charts if there is no such day.
func (c *Charts) at(day int) chartDay {
	if day >= len(c.days) {
		return chartDay{}
	}
	return c.days[day]
}

// Regions returns the sorted regions with a chart on that day; day 0 is the oldest.
func (c *Charts) Regions(day int) []string { return slices.Sorted(maps.Keys(c.at(day).regions)) }

// Chart returns a region's chart on that day, by rank, or nil if there is none; day 0 is the
// oldest. The caller must not change it.
func (c *Charts) Chart(region string, day int) []*Video { return c.at(day).regions[region] }

// Video returns the video as of that day, or else of the last earlier day with it, or nil.
func (c *Charts) Video(id string, day int) *Video {
	for ; day >= 0; day-- {
		if v := c.at(day).byID[id]; v != nil {
			return v
		}
	}
	return nil
}

// find returns the values of that day's matching videos, in order of their IDs.
func (c *Charts) find(day int, wanted func(*Video) bool) (matching []object) {
	byID := c.at(day).byID
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		if wanted(byID[id]) {
			matching = append(matching, byID[id].values())
		}
	}
	return matching
}

// newCharts groups videos into charts by date, region and rank.
func newCharts(videos []*Video) *Charts {
	byDate := map[string]chartDay{}
	for _, v := range videos {
		day, ok := byDate[v.TrendingDate]
		if !ok {
			day = chartDay{v.TrendingDate, map[string][]*Video{}, map[string]*Video{}}
			byDate[v.TrendingDate] = day
		}
		day.regions[v.Region] = append(day.regions[v.Region], v)
		if day.byID[v.ID] == nil {
			day.byID[v.ID] = v
		}
	}
	c := &Charts{}
	for _, date := range slices.Sorted(maps.Keys(byDate)) {
		day := byDate[date]
		for _, chart := range day.regions {
			slices.SortStableFunc(chart, func(a, b *Video) int { return a.Rank - b.Rank })
		}
		c.days = append(c.days, day)
	}
	return c
}

// SharedData returns the path of real charts or recorded responses: below data, or if that is
// empty below a folder shared/data above the test. It returns "" if there are none.
func SharedData(data string, path ...string) string {
	for dir, _ := os.Getwd(); data == "" && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if dirs, _ := filepath.Glob(filepath.Join(dir, "shared", "data")); dirs != nil {
			data = dirs[0]
		}
	}
	if data == "" {
		return ""
	}
	return filepath.Join(data, filepath.Join(path...))
}

// LoadDir reads every *.jsonl.gz file of a folder, one video per line. Errors name file and line.
func LoadDir(dir string) (*Charts, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no charts (*.jsonl.gz) in %s", dir)
	}
	var all []*Video
	for _, name := range names {
		videos, err := loadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, videos...)
	}
	return newCharts(all), nil
}

func loadFile(name string) ([]*Video, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var videos []*Video
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 4<<20)
	for n := 1; lines.Scan(); n++ {
		v := &Video{}
		if err := json.Unmarshal(lines.Bytes(), v); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if v.ID == "" || v.Region == "" || v.TrendingDate == "" {
			return nil, fmt.Errorf("%s:%d: video_id, region and trending_date must not be empty",
				name, n)
		}
		videos = append(videos, v)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return videos, nil
}

// Video is a video in a chart on one day, in the format of LoadDir's files.
type Video struct {
	ID           string   `json:"video_id"`
	Title        string   `json:"title"`
	ChannelID    string   `json:"channel_id"`
	ChannelTitle string   `json:"channel_title"`
	CategoryID   string   `json:"category_id"`
	PublishedAt  string   `json:"published_at"` // RFC 3339
	Tags         []string `json:"tags"`
	// Counters are nil if the upstream omits them.
	ViewCount        *int64 `json:"view_count"`
	LikeCount        *int64 `json:"like_count"`
	CommentCount     *int64 `json:"comment_count"`
	Thumbnail        string `json:"thumbnail"` // URL of the smallest
	Description      string `json:"description"`
	Region           string `json:"region"`
	TrendingDate     string `json:"trending_date"` // 2006-01-02
	Rank             int    `json:"rank"`          // in its chart, from 1
	CommentsDisabled bool   `json:"comments_disabled"`
	RatingsDisabled  bool   `json:"ratings_disabled"`
	Duration         string `json:"duration"` // ISO 8601; "" if unknown

	language string
}

// values returns the video's values for documents. Counters are decimal strings.
func (v *Video) values() object {
	return object{"id": v.ID, "title": v.Title, "channel": v.ChannelID, "tags": v.Tags,
		"channel_title": v.ChannelTitle, "category": v.CategoryID, "published": v.PublishedAt,
		"description": v.Description, "duration": v.Duration, "language": v.language,
		"thumbnail": strings.TrimSuffix(v.Thumbnail, "default.jpg"),
		"views":     counter(v.ViewCount, false), "likes": counter(v.LikeCount, v.RatingsDisabled),
		"comments": counter(v.CommentCount, v.CommentsDisabled)}
}

func counter(n *int64, disabled bool) string {
	if n == nil || disabled {
		return ""
	}
	return decimal(*n)
}
