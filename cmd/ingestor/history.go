package main

import (
	"fmt"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
)

// historyJSON is a video and how it came to be so.
type historyJSON struct {
	videoJSON
	Description string         `json:"description"`
	Names       []namesJSON    `json:"names"`
	Counters    []countersJSON `json:"counters"`
}

type namesJSON struct {
	At        cli.Time `json:"at"`
	Title     string   `json:"title"`
	Channel   string   `json:"channel"`
	ChannelID string   `json:"channel_id"`
	Category  string   `json:"category"`
}

type countersJSON struct {
	At       cli.Time `json:"at"`
	Views    *int64   `json:"views"`
	Likes    *int64   `json:"likes"`
	Comments *int64   `json:"comments"`
}

func outwardHistory(h catalog.History) historyJSON {
	out := historyJSON{videoJSON: outwardVideo(h.Seen, 0), Description: h.Description, Names: []namesJSON{}, Counters: []countersJSON{}}
	for _, n := range h.Names {
		out.Names = append(out.Names, namesJSON{cli.Time(n.At), n.Title, n.ChannelTitle, n.ChannelID, n.Category})
	}
	for _, c := range h.Counters {
		out.Counters = append(out.Counters, countersJSON{cli.Time(c.At), c.Views, c.Likes, c.Comments})
	}
	return out
}

func (a *app) drawHistory(h historyJSON) error {
	fmt.Fprintf(a.stdout, "%s  %s\n%s (%s), category %s\nfirst seen %s, fetched %s\n\n", h.ID, oneLine(h.Title, 100), oneLine(h.Channel, 60),
		h.ChannelID, h.Category, h.FirstSeenAt, h.FetchedAt)
	screen := cli.NewScreen(a.stdout, a.getenv)
	counters := screen.Table("at", ">views", ">likes", ">comments")
	for _, c := range h.Counters {
		counters.AppendRow([]any{c.At, optional(screen, c.Views), optional(screen, c.Likes), optional(screen, c.Comments)})
	}
	if err := screen.Draw(counters); err != nil || len(h.Names) < 2 {
		return err
	}
	names := screen.Table("at", "title", "channel", "category")
	for _, n := range h.Names {
		names.AppendRow([]any{n.At, oneLine(n.Title, 60), oneLine(n.Channel, 28), n.Category})
	}
	fmt.Fprintln(a.stdout)
	return screen.Draw(names)
}

// optional is a counter for people; a dash when the upstream did not say, which is not zero.
func optional(screen cli.Screen, n *int64) string {
	if n == nil {
		return "-"
	}
	return screen.Number(*n)
}
