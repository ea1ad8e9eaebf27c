package main

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quotabudget/internal/cli"
	"quotabudget/internal/standin"
	"quotabudget/internal/words"
)

// standinFlags holds the flags that have no field in the stand-in.
type standinFlags struct {
	listen, data, account string
	units                 int64
	used                  []string
}

func standinCommand(a *app) *cobra.Command {
	var f standinFlags
	api := new(standin.YouTube)
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
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.apply(api, c.Flags().Changed("units")); err != nil {
				return err
			}
			return a.ServeStandin(c.Context(), f.listen, api, func() any { return api.Counts() })
		},
	}
	f.bind(c.Flags(), api)
	cli.Bound(c.MarkFlagDirname("data"))
	return c
}

func (f *standinFlags) bind(flags *pflag.FlagSet, api *standin.YouTube) {
	flags.StringVar(&f.listen, "listen", "",
		"`ADDR` to listen on, such as 127.0.0.1:8080; port 0 picks a free one")
	flags.StringVar(&f.data, "data", "",
		"serve the charts of `DIR`/*.jsonl.gz instead of generated ones")
	flags.Int64Var(&f.units, "units", 10_000, "`N` units a day in the default bucket")
	flags.Int64Var(&api.MinuteLimit, "minute-units", 0,
		"`N` units a minute over all buckets; 0 for no such limit")
	flags.DurationVar(&api.Latency, "latency", 0, "delay every response by `DURATION`")
	flags.IntVar(&api.PageMove, "page-move", 0,
		"charts move down by `N` places from page to page")
	flags.StringArrayVar(&api.Faults, "fault", nil,
		"fault to inject, as `SPEC`; may be repeated")
	flags.StringArrayVar(&api.Keys, "key", nil,
		"accept only this `KEY`; may be repeated (default any)")
	flags.StringVar(&f.account, "service-account", "", "serve Google's meter "+
		"to the service account whose JSON key is `FILE`; created if it does not exist")
	flags.DurationVar(&api.Cloud.Lag, "meter-lag", 0,
		"delay of that meter: a `DURATION`")
	flags.StringArrayVar(&f.used, "used", nil, "earlier use by other programs, as `BUCKET=N@WHEN`: "+
		"RFC 3339, a duration ago, or yesterday; may be repeated")
	flags.StringVar(&api.Cloud.Fault, "meter-fault", "",
		"a fault of that meter, as `KIND`: "+strings.Join(standin.CloudFaults(), ", "))
	flags.StringArrayVar(&api.Tokens, "token", nil,
		"accept only this OAuth `TOKEN`, and require it for writing; may be repeated (default any)")
	cli.Limit(flags, 0, math.MaxInt64, "units", "minute-units", "page-move")
}

// apply checks the flags, and applies those that have no field in the stand-in. limited reports
// whether --units is given.
func (f *standinFlags) apply(api *standin.YouTube, limited bool) error {
	err := cli.CheckListen(f.listen, "ingestor standin --listen 127.0.0.1:8080")
	switch fault := api.Cloud.Fault; {
	case err != nil:
		return err
	case min(api.Latency, api.Cloud.Lag) < 0:
		return cli.Usagef("--latency and --meter-lag must be at least 0")
	case fault != "" && !slices.Contains(standin.CloudFaults(), fault):
		return cli.Usagef("--meter-fault %s: write one of %s", fault,
			strings.Join(standin.CloudFaults(), ", "))
	}
	if err := api.Check(); err != nil {
		return cli.Usagef("%w", err)
	}
	if limited {
		api.Limits = map[string]int64{"default": f.units}
	}
	if f.account != "" {
		account, err := accountIn(f.account)
		if err != nil {
			return err
		}
		api.Cloud.Accounts = append(api.Cloud.Accounts, account)
	}
	if f.data != "" {
		if api.Charts, err = standin.LoadDir(f.data); err != nil {
			return err
		}
	}
	for _, spec := range f.used {
		if err := use(api, spec); err != nil {
			return err
		}
	}
	return nil
}

// standinProject is the project of a new service account.
const standinProject = "standin-project"

// accountIn returns the service account whose key is in a file. It creates both if there is no such
// file.
func accountIn(path string) (*standin.ServiceAccount, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		account, text, err := standin.NewAccountKey(standinProject,
			"https://oauth2.googleapis.com/token")
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		return account, err
	}
	if err != nil {
		return nil, err
	}
	account, err := standin.ParseAccountKey(text)
	if err != nil {
		return nil, cli.Usagef("--service-account %s: %w", path, err)
	}
	return account, nil
}

// use adds the units of a --used flag to the meter.
func use(s *standin.YouTube, spec string) error {
	bucket, figures, ok := strings.Cut(spec, "=")
	amount, when, ok2 := strings.Cut(figures, "@")
	units, err := strconv.ParseInt(amount, 10, 64)
	if !ok || !ok2 || err != nil || units < 1 {
		return cli.Usagef("--used %s: write BUCKET=N@WHEN, such as default=40@2h", spec)
	}
	var at time.Time
	if when == "yesterday" {
		at = s.Yesterday()
	} else if ago, err := words.ParseSpan(when); err == nil {
		at = time.Now().Add(-ago)
	} else if at, err = time.Parse(time.RFC3339, when); err != nil {
		return cli.Usagef("--used %s: %s is neither a duration nor RFC 3339 nor yesterday", spec,
			when)
	}
	s.Use(at, bucket, units)
	return nil
}
