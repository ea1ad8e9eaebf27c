package main

import (
	"cmp"

	"quotabudget/internal/cli"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

func (a *app) drawHistory(h report.History) error {
	screen := a.Screen()
	err := screen.Say("%s  %s\n%s (%s), category %s\nfirst seen %s, fetched %s\n\n", h.ID,
		words.Plain(h.Title), words.Plain(h.Channel), h.ChannelID, h.Category,
		screen.At(h.FirstSeenAt).Text, screen.At(h.FetchedAt).Text)
	counters := screen.Table("at", ">views", ">likes", ">comments")
	for _, c := range h.Counters {
		counters.AppendRow([]any{screen.At(c.At), c.Views, c.Likes, c.Comments})
	}
	if err = cmp.Or(err, screen.Draw(counters, cli.Shorten("at"))); len(h.Names) < 2 {
		return err
	}
	names := screen.Table("at", "title", "channel", "category")
	for _, n := range h.Names {
		names.AppendRow([]any{screen.At(n.At), n.Title, n.Channel, n.Category})
	}
	return cmp.Or(err, screen.Say("\n"),
		screen.Draw(names, cli.Shorten("at"), cli.Cut("title", 40), cli.Cut("channel", 16),
			cli.Cut("title", 20), cli.Cut("channel", 8), cli.Cut("category", 8)))
}
