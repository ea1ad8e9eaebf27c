package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/standin"
	"quotabudget/internal/words"
)

// youtubeName is the stand-in that has its own package.
const youtubeName = "youtube"

type standinFlags struct {
	listen        string
	limits        []string
	prices        []string
	faults        []string
	keys          []string
	adminKey      string
	latency, pace time.Duration
	rows          int
}

func (a *app) standin() *cobra.Command {
	f := standinFlags{rows: defaultRows}
	names := append(standin.Names(), youtubeName)
	a.Manual.Fill("standin", "{apis}", strings.Join(names, ", "),
		"{faults}", strings.Join(standin.FaultKinds("generic"), ", "))
	c := a.Command("standin", func(c *cobra.Command, args []string) error {
		server, counts, err := f.server(args[0])
		if err != nil {
			return err
		}
		return a.ServeStandin(c.Context(), f.listen, server, counts)
	})
	c.ValidArgs = names
	flags := c.Flags()
	cli.Flags(flags, "listen", &f.listen, "limit", &f.limits, "price", &f.prices,
		"latency", &f.latency, "pace", &f.pace, "rows", &f.rows,
		"fault", &f.faults, "key", &f.keys, "admin-key", &f.adminKey)
	cli.Limit(flags, 1, 1000, "rows")
	return c
}

const defaultRows = 3

// server returns the stand-in of that name, and a function that returns its counts.
func (f standinFlags) server(name string) (http.Handler, func() any, error) {
	usage := "quotactl standin " + name + " --listen 127.0.0.1:8081"
	if err := cli.CheckListen(f.listen, usage); err != nil {
		return nil, nil, err
	}
	if min(f.latency, f.pace) < 0 {
		return nil, nil, cli.Usagef("--latency and --pace must be at least 0")
	}
	limits, err := standin.ParseLimits(f.limits...)
	if err != nil {
		return nil, nil, cli.Usagef("%w", err)
	}
	if name == youtubeName {
		return f.youtube(limits)
	}
	s, err := standin.New(name)
	if err != nil {
		names := append(standin.Names(), youtubeName)
		return nil, nil, cli.Usagef("no stand-in %q%s: there are %s", words.Clip(name),
			words.DidYouMean(name, names), strings.Join(names, ", "))
	}
	s.Limits, s.Keys, s.Latency, s.Pace, s.Rows = limits, f.keys, f.latency, f.pace, f.rows
	s.Faults, s.AdminKey = f.faults, f.adminKey
	if s.Prices, err = standin.ParsePrices(f.prices...); err != nil {
		return nil, nil, cli.Usagef("%w", err)
	}
	if err := s.Check(); err != nil {
		return nil, nil, cli.Usagef("%w", err)
	}
	return s, func() any { return s.Counts() }, nil
}

// youtube returns the stand-in of the YouTube Data API, whose limits follow the Pacific day.
func (f standinFlags) youtube(limits map[string][]standin.Limit) (http.Handler, func() any, error) {
	buckets := strings.Fields("default search_list video_batch_get_stats video_insert")
	s := &standin.YouTube{Limits: map[string]int64{}, Keys: f.keys, Latency: f.latency,
		Faults: f.faults}
	for _, bucket := range slices.Sorted(maps.Keys(limits)) {
		l := limits[bucket]
		if len(l) != 1 || l[0].Calendar != "day" || !slices.Contains(buckets, bucket) {
			return nil, nil, cli.Usagef("--limit %s=%s: youtube has limits such as "+
				"default=100/day, on %s", bucket, l[len(l)-1], strings.Join(buckets, ", "))
		}
		s.Limits[bucket] = l[0].Units
	}
	if len(f.prices) > 0 || f.pace > 0 || f.rows != defaultRows || f.adminKey != "" {
		return nil, nil, cli.Usagef("youtube has no --price, no --pace, no --rows and no --admin-key")
	}
	if err := s.Check(); err != nil {
		return nil, nil, cli.Usagef("%w", err)
	}
	return s, func() any { return s.Counts() }, nil
}
