package youtubetest

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

// Video is a video in a chart on a day, as it is written in the files that LoadDir reads.
type Video struct {
	ID           string   `json:"video_id"`
	Title        string   `json:"title"`
	ChannelID    string   `json:"channel_id"`
	ChannelTitle string   `json:"channel_title"`
	CategoryID   string   `json:"category_id"`
	PublishedAt  string   `json:"published_at"` // RFC 3339
	Tags         []string `json:"tags"`
	// The counters are nil when the upstream does not say.
	ViewCount        *int64 `json:"view_count"`
	LikeCount        *int64 `json:"like_count"`
	CommentCount     *int64 `json:"comment_count"`
	Thumbnail        string `json:"thumbnail"` // the URL of the smallest
	Description      string `json:"description"`
	Region           string `json:"region"`
	TrendingDate     string `json:"trending_date"` // as 2006-01-02
	Rank             int    `json:"rank"`          // in its chart, from 1
	CommentsDisabled bool   `json:"comments_disabled"`
	RatingsDisabled  bool   `json:"ratings_disabled"`
	Duration         string `json:"duration"` // ISO 8601, "" when unknown

	language string
}

// Charts are the charts of regions on one or more days. They do not change.
type Charts struct {
	days []chartDay // oldest first
}

type chartDay struct {
	date    string
	regions map[string][]*Video // in the order of rank
	byID    map[string]*Video
}

// Days is how many days there are.
func (c *Charts) Days() int { return len(c.days) }

// Regions are those that have a chart on that day, sorted; day 0 is the oldest.
func (c *Charts) Regions(day int) []string {
	return slices.Sorted(maps.Keys(c.days[day].regions))
}

// Chart is the chart of a region on that day, by rank, or nil; day 0 is the oldest. It must not be
// changed.
func (c *Charts) Chart(region string, day int) []*Video {
	if day >= len(c.days) {
		return nil
	}
	return c.days[day].regions[region]
}

// Video is the video with that id as it was on that day or last before it, or nil.
func (c *Charts) Video(id string, day int) *Video {
	for d := min(day, len(c.days)-1); d >= 0; d-- {
		if v := c.days[d].byID[id]; v != nil {
			return v
		}
	}
	return nil
}

// ofChannel is some video of the channel on that day, the same each time, or nil.
func (c *Charts) ofChannel(id string, day int) *Video {
	if day >= len(c.days) {
		return nil
	}
	for _, v := range c.days[day].sorted() {
		if v.ChannelID == id {
			return v
		}
	}
	return nil
}

// search finds the videos of that day whose title holds every word, by id.
func (c *Charts) search(words string, day int) []*Video {
	var found []*Video
	if day >= len(c.days) {
		return found
	}
	for _, v := range c.days[day].sorted() {
		title := strings.ToLower(v.Title)
		lacks := func(word string) bool { return !strings.Contains(title, word) }
		if !slices.ContainsFunc(strings.Fields(strings.ToLower(words)), lacks) {
			found = append(found, v)
		}
	}
	return found
}

func (d chartDay) sorted() []*Video {
	var all []*Video
	for _, id := range slices.Sorted(maps.Keys(d.byID)) {
		all = append(all, d.byID[id])
	}
	return all
}

// newCharts puts videos into charts by their date, region and rank.
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

// LoadDir reads every *.jsonl.gz file of a folder: one video a line. What is wrong is reported with
// file and line.
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
