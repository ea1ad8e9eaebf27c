package main

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/standin"
	"quotabudget/internal/words"
)

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
