package report

import (
	"quotabudget/internal/catalog"
	"quotabudget/internal/words"
)

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
	was, now := Ranks(before), Ranks(after)
	for _, v := range after {
		switch rank := was[v.ID]; {
		case rank == 0:
			out.Entered = append(out.Entered, NewVideo(v.Seen, v.Rank))
		case rank != v.Rank:
			out.Moved = append(out.Moved, Move{v.ID, v.Title, v.Rank, rank})
		}
	}
	for _, v := range before {
		if now[v.ID] == 0 {
			out.Left = append(out.Left, NewVideo(v.Seen, v.Rank))
		}
	}
	return out
}

// Ranks returns the places of a chart's videos by their IDs.
func Ranks(videos []catalog.Ranked) map[string]int {
	ranks := make(map[string]int, len(videos))
	for _, v := range videos {
		ranks[v.ID] = v.Rank
	}
	return ranks
}
