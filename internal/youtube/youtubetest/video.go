package youtubetest

import (
	"strconv"
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

// video is the video with the parts that were asked for.
func (q *query) video(v *Video) item {
	one := q.item("video", v.ID, v.snippet())
	one.ContentDetails = q.part("contentDetails", v.contentDetails())
	one.Statistics = q.part("statistics", v.counters(true))
	one.Status = q.part("status", map[string]any{"uploadStatus": "processed",
		"privacyStatus": "public", "license": "youtube", "embeddable": true,
		"publicStatsViewable": true, "madeForKids": false})
	return one
}

// about is what every snippet of a video has, with the first n thumbnails.
func (v *Video) about(n int) map[string]any {
	return map[string]any{"publishedAt": v.PublishedAt, "channelId": v.ChannelID, "title": v.Title,
		"description": v.Description, "thumbnails": v.thumbnails(n), "channelTitle": v.ChannelTitle,
		"liveBroadcastContent": "none"}
}

func (v *Video) snippet() map[string]any {
	s := v.about(5)
	s["categoryId"] = v.CategoryID
	s["localized"] = map[string]string{"title": v.Title, "description": v.Description}
	if len(v.Tags) > 0 {
		s["tags"] = v.Tags
	}
	if v.language != "" {
		s["defaultAudioLanguage"], s["defaultLanguage"] = v.language, v.language
	}
	return s
}

// found is the snippet of a search result.
func (v *Video) found() map[string]any {
	s := v.about(3)
	s["publishTime"] = v.PublishedAt
	return s
}

// channel is the snippet of the video's channel.
func (v *Video) channel() map[string]any {
	return map[string]any{"title": v.ChannelTitle, "description": "",
		"publishedAt": "2012-02-29T12:00:00Z", "thumbnails": v.thumbnails(3),
		"localized": map[string]string{"title": v.ChannelTitle, "description": ""}}
}

func (v *Video) contentDetails() map[string]any {
	c := map[string]any{"dimension": "2d", "definition": "hd", "caption": "false",
		"licensedContent": true, "contentRating": map[string]any{}, "projection": "rectangular"}
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
		name, prefix  string
		width, height int
	}{{"default", "", 120, 90}, {"medium", "mq", 320, 180}, {"high", "hq", 480, 360},
		{"standard", "sd", 640, 480}, {"maxres", "maxres", 1280, 720}}
	all := map[string]any{}
	for _, s := range sizes[:n] {
		url := strings.TrimSuffix(v.Thumbnail, "default.jpg") + s.prefix + "default.jpg"
		all[s.name] = map[string]any{"url": url, "width": s.width, "height": s.height}
	}
	return all
}
