package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/regions"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

func (a *app) browse(ctx context.Context, read func(*catalog.Catalog) error) error {
	return a.withCatalog(ctx, read, func(ctx context.Context, url string) (*catalog.Catalog,
		error) {
		c, err := catalog.OpenReading(ctx, url)
		if errors.Is(err, fs.ErrNotExist) {
			return catalog.Open(ctx, url)
		}
		return c, err
	})
}

func (a *app) withCatalog(ctx context.Context, do func(*catalog.Catalog) error,
	open func(context.Context, string) (*catalog.Catalog, error)) error {
	cfg, err := a.Load(ctx)
	if err != nil {
		return err
	}
	c, err := open(ctx, cfg.Catalog)
	if err != nil {
		return err
	}
	err = errors.Join(do(c), c.Close())
	if errors.Is(err, catalog.ErrNotFound) {
		return cli.Hint(err, "ingestor once fetches charts; ingestor chart lists "+
			"the fetched ones")
	}
	return err
}

func chartCommand(a *app) *cobra.Command {
	var top int
	c := a.Command("chart", func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return a.charts(c.Context())
		}
		return a.chart(c.Context(), args[0], top)
	})
	c.ValidArgsFunction = a.completeRegions
	cli.Flags(c.Flags(), "top", &top)
	cli.Limit(c.Flags(), 0, math.MaxInt64, "top")
	return c
}

func (a *app) chart(ctx context.Context, code string, top int) error {
	region, err := regions.Parse(code)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	return a.browse(ctx, func(c *catalog.Catalog) error {
		chart, videos, err := c.Current(ctx, string(region), top)
		if err != nil {
			return err
		}
		out := report.NewChart(chart, videos)
		return a.Print(out, func(s cli.Screen) {
			s.Say("%s, complete %s, %d videos\n\n", chart.Region,
				s.Moment(chart.CompletedAt.Truncate(time.Second)), chart.Videos)
			drawVideos(s, out.Videos, true)
		})
	})
}

func drawVideos(s cli.Screen, videos []report.Video, ranked bool) {
	t := cli.View(videos, func(v report.Video) cli.Row {
		return cli.Row{">place", v.Rank, "id", v.ID, "title", v.Title, "channel", v.Channel,
			">views", v.Views}
	})
	if !ranked {
		cli.Drop("place")(t, 0)
	}
	s.Draw(t, cli.Cut("title", 40), cli.Cut("channel", 16), cli.Cut("title", 20),
		cli.Cut("channel", 8), cli.Cut("id", 11))
}

func (a *app) charts(ctx context.Context) error {
	cfg, err := a.Load(ctx)
	if err != nil {
		return err
	}
	names := regionNames(cfg)
	return a.browse(ctx, func(c *catalog.Catalog) error {
		states, err := c.Staleness(ctx, names)
		if err != nil {
			return err
		}
		out := cli.Object{"charts", cli.Each(states, report.NewRegion)}
		return a.Print(out, func(s cli.Screen) {
			t := cli.View(states, func(r catalog.RegionState) cli.Row {
				age := ""
				if !r.CompletedAt.IsZero() {
					age = words.Span(max(0, time.Since(r.CompletedAt)))
				}
				return cli.Row{"region", r.Region, "last complete chart", describe(s, r), "age", age}
			})
			s.Draw(t, cli.Shorten("last complete chart"))
		})
	})
}

func describe(screen cli.Screen, s catalog.RegionState) cli.Cell {
	text, at := "%s", s.CompletedAt
	switch {
	case s.Invalid:
		text, at = "the upstream has no such region (%s)", s.UnavailableAt
	case !s.UnavailableAt.IsZero():
		text, at = "the upstream has none (%s)", s.UnavailableAt
	case s.CompletedAt.IsZero():
		return cli.Cell{Text: "none yet"}
	}
	at = at.Truncate(time.Second) // it has passed
	return cli.Cell{
		Text:  fmt.Sprintf(text, screen.Moment(at)),
		Short: fmt.Sprintf(text, words.Moment(at)),
	}
}

func searchCommand(a *app) *cobra.Command {
	limit := 20
	c := a.Command("search", func(c *cobra.Command, args []string) error {
		words := strings.TrimSpace(strings.Join(args, " "))
		if words == "" {
			return cli.Usagef("no words to search for")
		}
		return a.browse(c.Context(), func(cat *catalog.Catalog) error {
			matches, err := cat.Search(c.Context(), words, 0, limit)
			if err != nil {
				return err
			}
			videos := cli.Each(matches, func(v catalog.Seen) report.Video {
				return report.NewVideo(v, 0)
			})
			return a.Print(cli.Object{"videos", videos}, func(s cli.Screen) {
				if len(matches) == 0 {
					s.Say("no video found\n")
					return
				}
				drawVideos(s, videos, false)
			})
		})
	})
	c.Args = cobra.ArbitraryArgs
	cli.Flags(c.Flags(), "limit", &limit)
	cli.Limit(c.Flags(), 0, math.MaxInt64, "limit")
	return c
}

func videoCommand(a *app) *cobra.Command {
	c := a.Command("video", func(c *cobra.Command, args []string) error {
		return a.browse(c.Context(), func(cat *catalog.Catalog) error {
			h, err := cat.Video(c.Context(), args[0])
			if err != nil {
				return err
			}
			out := report.NewHistory(h)
			return a.Print(out, func(s cli.Screen) { drawHistory(s, out) })
		})
	})
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return cli.Hint(cli.Usagef("%w", err),
			"write -- before an ID that begins with -: ingestor video -- -abcdefghij")
	})
	return c
}

func purgeCommand(a *app) *cobra.Command {
	var older string
	c := a.Command("purge", func(c *cobra.Command, _ []string) error {
		if older == "" {
			return cli.Hint(cli.Usagef("--older-than is missing"),
				"ingestor purge --older-than 30d")
		}
		d, err := words.ParseSpan(older)
		if err != nil || d <= 0 {
			return cli.Usagef("--older-than %q: write a duration such as 30d or 12h", older)
		}
		return a.withCatalog(c.Context(), func(cat *catalog.Catalog) error {
			n, err := cat.Delete(c.Context(), time.Now().Add(-d))
			if err != nil {
				return err
			}
			return a.Print(cli.Object{"videos_deleted", n}, func(s cli.Screen) {
				s.Say("%d videos deleted\n", n)
			})
		}, catalog.Open)
	})
	cli.Flags(c.Flags(), "older-than", &older)
	return c
}

func drawHistory(s cli.Screen, h report.History) {
	s.Say("%s  %s\n%s (%s), category %s\nfirst seen %s, fetched %s\n\n", h.ID,
		words.Plain(h.Title), words.Plain(h.Channel), h.ChannelID, h.Category,
		s.At(h.FirstSeenAt).Text, s.At(h.FetchedAt).Text)
	counters := cli.View(h.Counters, func(c report.Counters) cli.Row {
		return cli.Row{"at", s.At(c.At), ">views", c.Views, ">likes", c.Likes, ">comments", c.Comments}
	})
	s.Draw(counters, cli.Shorten("at"))
	if len(h.Names) < 2 {
		return
	}
	names := cli.View(h.Names, func(n report.Names) cli.Row {
		return cli.Row{"at", s.At(n.At), "title", n.Title, "channel", n.Channel, "category", n.Category}
	})
	s.Say("\n")
	s.Draw(names, cli.Shorten("at"), cli.Cut("title", 40), cli.Cut("channel", 16),
		cli.Cut("title", 20), cli.Cut("channel", 8), cli.Cut("category", 8))
}

// completeRegions offers the configured regions, or all regions if no configured one has the
// prefix. In a list with commas it completes the last item.
func (a *app) completeRegions(c *cobra.Command, args []string,
	word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	before, begun := "", strings.ToUpper(word)
	if at := strings.LastIndex(word, ","); at >= 0 {
		before, begun = word[:at+1], begun[at+1:]
	}
	var configured []regions.Region
	if cfg, err := a.Load(c.Context()); err == nil {
		configured = cfg.Ingest.Regions
	}
	for _, list := range [][]regions.Region{configured, regions.All()} {
		var words []string
		for _, r := range list {
			if strings.HasPrefix(string(r), begun) &&
				!slices.Contains(strings.Split(strings.ToUpper(before), ","), string(r)) {
				words = append(words, before+string(r))
			}
		}
		if len(words) > 0 {
			return words, cobra.ShellCompDirectiveNoFileComp
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
