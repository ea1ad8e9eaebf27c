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
	f := standinFlags{units: 10_000}
	api := new(standin.YouTube)
	a.Manual.Fill("standin", "{faults}", strings.Join(standin.FaultKinds("youtube"), ", "),
		"{meter-faults}", strings.Join(standin.CloudFaults(), ", "))
	c := a.Command("standin", func(c *cobra.Command, _ []string) error {
		if err := f.apply(api, c.Flags().Changed("units")); err != nil {
			return err
		}
		return a.ServeStandin(c.Context(), f.listen, api, func() any { return api.Counts() })
	})
	f.bind(c.Flags(), api)
	cli.Bound(c.MarkFlagDirname("data"))
	return c
}

func (f *standinFlags) bind(flags *pflag.FlagSet, api *standin.YouTube) {
	cli.Flags(flags, "listen", &f.listen, "data", &f.data, "units", &f.units,
		"minute-units", &api.MinuteLimit, "latency", &api.Latency, "page-move", &api.PageMove,
		"fault", &api.Faults, "key", &api.Keys, "service-account", &f.account,
		"meter-lag", &api.Cloud.Lag, "used", &f.used, "meter-fault", &api.Cloud.Fault,
		"token", &api.Tokens)
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
