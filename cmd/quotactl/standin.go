package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	var f standinFlags
	names := append(standin.Names(), youtubeName)
	c := &cobra.Command{
		Use:   "standin NAME --listen ADDR",
		Short: "Serve a stand-in for a metered API",
		Long: `standin answers as the API of that name does, and meters and refuses as it does, for
one account: ` + strings.Join(names, ", ") + `.

What a model writes depends on the request alone, and is billed in full even if the client hangs up.
A request can ask for more exactly, anywhere in its text: [[output:250]] is an answer of 250 tokens.

GET /standin/counts returns what was billed, without being counted. Ctrl-C ends the stand-in; it
prints its counts.

Limits are written BUCKET=UNITS/WINDOW, where WINDOW is a duration or minute, hour, day, week or
month; without a window, as many requests may be under way at once. A bucket keeps its default
limits unless it is named.

Faults are written KIND[@FROM[-[TO]]][/EVERY][*TIMES]: 503@3 (the third request), cut/3 (every
third), 429*2 (the first two). KIND is one of ` +
			strings.Join(standin.FaultKinds("generic"), ", ") + `;
youtube has those of ingestor standin.`,
		Example: `  quotactl standin anthropic --listen 127.0.0.1:8081 --limit output=4000/1m
  quotactl standin openai --listen 127.0.0.1:8081 --price input=1 \
    --price output=4 --limit money=50000/month
  quotactl standin github --listen 127.0.0.1:8081 --limit core=9/1h --fault 503@3
  curl 127.0.0.1:8081/standin/counts`,
		ValidArgs: names,
		Args:      cli.Args("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			server, counts, err := f.server(args[0])
			if err != nil {
				return err
			}
			return a.ServeStandin(c.Context(), f.listen, server, counts)
		},
	}
	f.bind(c.Flags())
	return c
}

func (f *standinFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "listen", "",
		"`ADDR` to listen on, such as 127.0.0.1:8081; port 0 picks a free one")
	flags.StringArrayVar(&f.limits, "limit", nil,
		"a limit of a bucket, as `SPEC`, such as output=4000/1m; may be repeated")
	flags.StringArrayVar(&f.prices, "price", nil,
		"`NAME=N` millionths of a dollar for one, such as output=15; may be repeated")
	flags.DurationVar(&f.latency, "latency", 0, "delay every response by `DURATION`")
	flags.DurationVar(&f.pace, "pace", 0, "delay each event of a stream by `DURATION`")
	flags.IntVar(&f.rows, "rows", defaultRows, "serve `N` items of each kind")
	cli.Limit(flags, 1, maxRows, "rows")
	flags.StringArrayVar(&f.faults, "fault", nil, "fault to inject, as `SPEC`; may be repeated")
	flags.StringArrayVar(&f.keys, "key", nil,
		"accept only this `KEY`; may be repeated (default any)")
	flags.StringVar(&f.adminKey, "admin-key", "",
		"accept only this `KEY` for the billing API (default any)")
}

const (
	defaultRows = 3
	maxRows     = 1000
)

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
