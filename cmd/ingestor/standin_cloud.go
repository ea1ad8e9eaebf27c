package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"quotabudget/internal/cli"
	"quotabudget/internal/standin"
	"quotabudget/internal/words"
)

// cloudFlags are those about what the stand-in says of its own metering.
type cloudFlags struct {
	account string
	lag     time.Duration
	used    []string
	fault   string
}

// standinProject is the project of the account that is made.
const standinProject = "standin-project"

func (f *cloudFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.account, "service-account", "", "serve Google's meter "+
		"to the service account whose JSON key is `FILE`; made if there is none")
	flags.DurationVar(&f.lag, "meter-lag", 0,
		"delay of that meter: a `DURATION`")
	flags.StringArrayVar(&f.used, "used", nil, "earlier use by other programs, as `BUCKET=N@WHEN`: "+
		"RFC 3339, a duration ago, or yesterday; may be repeated")
	flags.StringVar(&f.fault, "meter-fault", "",
		"a fault of that meter, as `KIND`: "+strings.Join(standin.CloudFaults(), ", "))
}

func (f cloudFlags) apply(s *standin.YouTube) error {
	if f.lag < 0 {
		return cli.Usagef("--meter-lag is 0 or more")
	}
	if f.fault != "" && !slices.Contains(standin.CloudFaults(), f.fault) {
		return cli.Usagef("--meter-fault %s: write one of %s", f.fault,
			strings.Join(standin.CloudFaults(), ", "))
	}
	s.Cloud.Lag, s.Cloud.Fault = f.lag, f.fault
	if f.account != "" {
		account, err := accountIn(f.account)
		if err != nil {
			return err
		}
		s.Cloud.Accounts = append(s.Cloud.Accounts, account)
	}
	for _, spec := range f.used {
		if err := use(s, spec); err != nil {
			return err
		}
	}
	return nil
}

// accountIn returns the service account whose key is in a file, and makes both if there is no such
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

// use meters what a --used says.
func use(s *standin.YouTube, spec string) error {
	bucket, rest, ok := strings.Cut(spec, "=")
	amount, when, ok2 := strings.Cut(rest, "@")
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
