package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quotabudget/internal/cli"
	"quotabudget/internal/standin"
)

type standinFlags struct {
	listen  string
	data    string
	units   int64
	minute  int64
	latency time.Duration
	move    int
	faults  []string
	keys    []string
	tokens  []string
	cloud   cloudFlags
}

func standinCommand(a *app) *cobra.Command {
	var f standinFlags
	c := &cobra.Command{
		Use:   "standin --listen ADDR",
		Short: "Serve a stand-in for the YouTube Data API",
		Long: `standin answers as the YouTube Data API v3 does: charts, videos, categories, regions,
channels, search and uploads, with its page tokens and its errors. It meters as the real one does,
for one project: four buckets, reset at midnight in Los Angeles. Charts are generated, or read from
DIR/*.jsonl.gz, one file a region.

GET /standin/counts returns what it has counted, without being counted. Ctrl-C ends it; it prints
its counts. With --service-account it also answers as Google's Cloud Monitoring and Service Usage
do, for quotactl reconcile.

Faults are written KIND[@FROM[-[TO]]][/EVERY][:REGION][#PAGE][*TIMES]: 503@3 (the third request),
500-html/10 (every tenth), hang:BR#2 (page 2 of Brazil), drop:US*2 (the first two requests for the
US). KIND is one of ` +
			strings.Join(standin.FaultKinds("youtube"), ", ") + ".",
		Example: `  ingestor standin --listen 127.0.0.1:8080
  ingestor standin --listen 127.0.0.1:8080 --units 9 --fault 503@3
  YOUTUBE_ENDPOINT=http://127.0.0.1:8080/ YOUTUBE_API_KEY=any ingestor once`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.standin(c.Context(), f, c.Flags().Changed("units"))
		},
	}
	f.bind(c.Flags())
	if err := c.MarkFlagDirname("data"); err != nil {
		panic(err) // the flag is bound above
	}
	return c
}

func (f *standinFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "listen", "",
		"`ADDR` to listen on, such as 127.0.0.1:8080; port 0 picks a free one")
	flags.StringVar(&f.data, "data", "",
		"serve the charts of `DIR`/*.jsonl.gz instead of generated ones")
	flags.Int64Var(&f.units, "units", 10_000, "`N` units a day in the default bucket")
	flags.Int64Var(&f.minute, "minute-units", 0,
		"`N` units a minute over all buckets; 0 for no such limit")
	flags.DurationVar(&f.latency, "latency", 0, "delay every response by `DURATION`")
	flags.IntVar(&f.move, "page-move", 0, "charts move down by `N` places from page to page")
	flags.StringArrayVar(&f.faults, "fault", nil, "what goes wrong, as `SPEC`; may be repeated")
	flags.StringArrayVar(&f.keys, "key", nil,
		"accept only this `KEY`; may be repeated (default any)")
	f.cloud.bind(flags)
	flags.StringArrayVar(&f.tokens, "token", nil,
		"accept only this OAuth `TOKEN`, and require it for writing; may be repeated (default any)")
}

func (a *app) standin(ctx context.Context, f standinFlags, limited bool) error {
	server, err := f.server(limited)
	if err != nil {
		return err
	}
	return a.ServeStandin(ctx, f.listen, server, func() any { return server.Counts() })
}

func (f standinFlags) server(limited bool) (*standin.YouTube, error) {
	err := cli.CheckListen(f.listen, "ingestor standin --listen 127.0.0.1:8080")
	if err != nil {
		return nil, err
	}
	if f.units < 0 || f.minute < 0 || f.latency < 0 || f.move < 0 {
		return nil, cli.Usagef("--units, --minute-units, --latency and --page-move must be at least 0")
	}
	s := &standin.YouTube{MinuteLimit: f.minute, Latency: f.latency, PageMove: f.move,
		Keys: f.keys, Tokens: f.tokens, Faults: f.faults}
	if limited {
		s.Limits = map[string]int64{"default": f.units}
	}
	if err := s.Check(); err != nil {
		return nil, cli.Usagef("%w", err)
	}
	if err := f.cloud.apply(s); err != nil {
		return nil, err
	}
	if f.data != "" {
		if s.Charts, err = standin.LoadDir(f.data); err != nil {
			return nil, err
		}
	}
	return s, nil
}
