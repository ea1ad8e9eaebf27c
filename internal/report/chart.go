// Package report computes the data that the programs and the HTTP API show, and defines their JSON.
package report

import (
	"slices"
	"time"

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

// Changes are the differences between two charts of a region.
type Changes struct {
	Region  string     `json:"region"`
	From    words.Time `json:"from" doc:"when the older chart was complete"`
	To      words.Time `json:"to" doc:"when the newer chart was complete"`
	Entered []Video    `json:"entered" doc:"only in the newer chart"`
	Left    []Video    `json:"left" doc:"only in the older chart"`
	Moved   []Move     `json:"moved" doc:"in both, on different places"`
}

// Move is a video whose rank changed.
type Move struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Rank  int    `json:"rank"`
	Was   int    `json:"was"`
}

// NewChanges compares two charts of a region.
func NewChanges(older catalog.Chart, before []catalog.Ranked, newer catalog.Chart,
	after []catalog.Ranked) Changes {
	out := Changes{newer.Region, words.Time(older.CompletedAt), words.Time(newer.CompletedAt),
		[]Video{}, []Video{}, []Move{}}
	places, left := Compare(before, after)
	for _, p := range places {
		switch {
		case p.Was == 0:
			out.Entered = append(out.Entered, NewVideo(p.Seen, p.Rank))
		case p.Was != p.Rank:
			out.Moved = append(out.Moved, Move{p.ID, p.Title, p.Rank, p.Was})
		}
	}
	for _, v := range left {
		out.Left = append(out.Left, NewVideo(v.Seen, v.Rank))
	}
	return out
}

// Place is a video in a chart, with its rank in the previous chart; 0 for none.
type Place struct {
	catalog.Ranked
	Was int
}

// Up returns the number of places gained since the previous chart; negative for a loss.
func (p Place) Up() int { return p.Was - p.Rank }

// Down returns the opposite of Up.
func (p Place) Down() int { return -p.Up() }

// Compare returns the places of the later chart, and the videos that only the earlier chart has.
func Compare(before, after []catalog.Ranked) (places []Place, left []catalog.Ranked) {
	was := make(map[string]int, len(before))
	for _, v := range before {
		was[v.ID] = v.Rank
	}
	for _, v := range after {
		places = append(places, Place{v, was[v.ID]})
		delete(was, v.ID)
	}
	for _, v := range before {
		if was[v.ID] > 0 {
			left = append(left, v)
		}
	}
	return places, left
}

// ReadChart is one complete chart, as read by a sweep. Charts of different lengths are compared in
// the places that both have.
type ReadChart struct {
	At     time.Time // when it was complete
	Units  int64     // units that it took
	Places []string  // videos, the first place first; "" for none
}

// Freshness is how much the charts of a region differ from the charts before them.
type Freshness struct {
	Pairs   int           // number of pairs of consecutive charts; with 0 the fields below are 0
	Gap     time.Duration // between two charts, on average
	Moved   float64       // fraction of the compared places that hold another video
	New     float64       // fraction of the compared places whose video was in none before
	Units   int64         // spent on all charts but the first
	PerUnit float64       // new videos for each of those units
}

// CompareCharts measures the charts of a region, oldest first. It counts new videos, not places,
// because one new video at the top moves all videos below it.
func CompareCharts(charts []ReadChart) (f Freshness) {
	var moved, fresh, places float64
	for i := 1; i < len(charts); i++ {
		before, after := charts[i-1], charts[i]
		depth := min(len(before.Places), len(after.Places))
		if depth == 0 || !after.At.After(before.At) {
			continue
		}
		for place, v := range after.Places[:depth] {
			if before.Places[place] != v {
				moved++
			}
			if v != "" && !slices.Contains(before.Places[:depth], v) {
				fresh++
			}
		}
		f.Pairs++
		f.Units += after.Units
		f.Gap += after.At.Sub(before.At)
		places += float64(depth)
	}
	if f.Pairs == 0 {
		return f
	}
	f.Moved, f.New = moved/places, fresh/places
	f.PerUnit = fresh / max(1, float64(f.Units))
	f.Gap /= time.Duration(f.Pairs)
	return f
}
