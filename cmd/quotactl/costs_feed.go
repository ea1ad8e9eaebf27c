package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs/feed"
)

// fetchTimeout is how long a feed may take.
const fetchTimeout = 30 * time.Second

// readFeed reads a file or fetches a URL, and returns its day.
func readFeed(ctx context.Context, source string) (data []byte, day string, err error) {
	if strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://") {
		data, err = fetchFeed(ctx, source)
		return data, today(), err
	}
	data, err = config.ReadPipe(ctx, source, feed.MaxBytes)
	if err != nil {
		return nil, "", err
	}
	day = today()
	if info, err := os.Stat(source); err == nil {
		day = info.ModTime().UTC().Format(time.DateOnly)
	}
	return data, day, nil
}

// fetchFeed fetches a feed.
func fetchFeed(ctx context.Context, address string) ([]byte, error) {
	where, err := url.Parse(address)
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	data, err := feed.Fetch(ctx, &http.Client{Timeout: fetchTimeout}, where)
	if err != nil {
		err = &cli.Coded{Code: cli.ExitUnavailable, Err: fmt.Errorf(
			"cannot fetch prices from %s: %w; the rows stay as they are", where.Host, err)}
	}
	return data, err
}

// feedLists returns the lists in force, or of --into, with a table that names its feed.
func (a *app) feedLists(ctx context.Context, f importFlags) (lists []*listFile, err error) {
	names := []string{f.upstream}
	if f.upstream == "" && f.into == "" {
		cfg, err := a.Load(ctx)
		if err != nil {
			return nil, err
		}
		names = cfg.Prices.Upstreams()
	}
	for _, name := range names {
		of := f
		of.upstream = name
		l, err := a.listFile(ctx, of)
		if _, mistake := errors.AsType[*cli.UsageError](err); err != nil && (mistake || f.into != "") {
			return nil, err
		}
		if err == nil && l.table.Feed.URL != "" {
			lists = append(lists, l)
		}
	}
	if len(lists) == 0 {
		return nil, cli.Usagef("no price list in force names a feed: write feed: {url: …} in its table")
	}
	return lists, nil
}

// update fetches the feeds of the lists and imports them. A feed that cannot be fetched holds up no
// other.
func (a *app) update(ctx context.Context, f importFlags, lists []*listFile) error {
	var failed error
	feeds := map[string][]byte{} // by URL: several lists may have one feed
	fetched := slices.DeleteFunc(lists, func(l *listFile) bool {
		data, known := feeds[l.table.Feed.URL]
		if !known {
			var err error
			data, err = fetchFeed(ctx, l.table.Feed.URL)
			failed, feeds[l.table.Feed.URL] = errors.Join(failed, err), data
		}
		l.data, l.day = data, today()
		return data == nil
	})
	return errors.Join(a.importFeeds(f, fetched), failed)
}
