// Package report computes the data that the programs and the HTTP API show, and defines their JSON.
package report

import (
	"quotabudget/internal/catalog"
	"quotabudget/internal/words"
)

// Video is the last known state of a video. A counter that the upstream left out is null.
type Video struct {
	Rank        int        `json:"rank,omitempty" doc:"its place in the chart"`
	ID          string     `json:"id"`
	Title       string     `json:"title"`
	Channel     string     `json:"channel"`
	ChannelID   string     `json:"channel_id"`
	Category    string     `json:"category" doc:"the upstream's category id"`
	PublishedAt words.Time `json:"published_at"`
	Duration    string     `json:"duration" doc:"ISO 8601; empty if the upstream did not say"`
	Tags        []string   `json:"tags"`
	Views       *int64     `json:"views"`
	Likes       *int64     `json:"likes"`
	Comments    *int64     `json:"comments"`
	FirstSeenAt words.Time `json:"first_seen_at"`
	FetchedAt   words.Time `json:"fetched_at"`
}

// NewVideo returns the video at a rank of a chart; rank 0 means no rank.
func NewVideo(v catalog.Seen, rank int) Video {
	return Video{
		Rank: rank, ID: v.ID, Title: v.Title, Channel: v.ChannelTitle, ChannelID: v.ChannelID,
		Category: v.Category, PublishedAt: words.Time(v.PublishedAt), Duration: v.Duration, Tags: v.Tags,
		Views: v.Views, Likes: v.Likes, Comments: v.Comments,
		FirstSeenAt: words.Time(v.FirstSeenAt), FetchedAt: words.Time(v.FetchedAt),
	}
}

// Chart is a complete chart with its first videos.
type Chart struct {
	Region      string     `json:"region"`
	StartedAt   words.Time `json:"started_at"`
	CompletedAt words.Time `json:"completed_at"`
	Run         string     `json:"run"`
	Videos      []Video    `json:"videos"`
}

// NewChart returns a chart of the catalogue in JSON.
func NewChart(c catalog.Chart, videos []catalog.Ranked) Chart {
	out := Chart{c.Region, words.Time(c.StartedAt), words.Time(c.CompletedAt), c.Run, []Video{}}
	for _, v := range videos {
		out.Videos = append(out.Videos, NewVideo(v.Seen, v.Rank))
	}
	return out
}

// Region holds the age of a region's chart.
type Region struct {
	Region        string     `json:"region"`
	CompletedAt   words.Time `json:"completed_at" doc:"of its last complete chart; null if none"`
	UnavailableAt words.Time `json:"unavailable_at" doc:"when the upstream last reported none"`
	Invalid       bool       `json:"invalid" doc:"the upstream has no such region"`
}

// NewRegion returns the state of a region in JSON.
func NewRegion(s catalog.RegionState) Region {
	return Region{s.Region, words.Time(s.CompletedAt), words.Time(s.UnavailableAt), s.Invalid}
}

// History is a video and how its names and counters changed, oldest first.
type History struct {
	Video
	Description string     `json:"description"`
	Names       []Names    `json:"names"`
	Counters    []Counters `json:"counters"`
}

// Names are a video's names from a moment on.
type Names struct {
	At        words.Time `json:"at"`
	Title     string     `json:"title"`
	Channel   string     `json:"channel"`
	ChannelID string     `json:"channel_id"`
	Category  string     `json:"category"`
}

// Counters are a video's counters from a moment on.
type Counters struct {
	At       words.Time `json:"at"`
	Views    *int64     `json:"views"`
	Likes    *int64     `json:"likes"`
	Comments *int64     `json:"comments"`
}

// NewHistory returns the history of a video in JSON.
func NewHistory(h catalog.History) History {
	out := History{Video: NewVideo(h.Seen, 0), Description: h.Description,
		Names: []Names{}, Counters: []Counters{}}
	for _, n := range h.Names {
		out.Names = append(out.Names,
			Names{words.Time(n.At), n.Title, n.ChannelTitle, n.ChannelID, n.Category})
	}
	for _, c := range h.Counters {
		out.Counters = append(out.Counters, Counters{words.Time(c.At), c.Views, c.Likes, c.Comments})
	}
	return out
}
