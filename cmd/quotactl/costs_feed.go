package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
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
		got, err := fetchFeed(ctx, source, "")
		return got.Data, today(), err
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

// fetchFeed fetches a feed, unless it has the ETag still.
func fetchFeed(ctx context.Context, address, tag string) (feed.Fetched, error) {
	where, err := url.Parse(address)
	if err != nil {
		return feed.Fetched{}, cli.Usagef("%w", err)
	}
	got, err := feed.Fetch(ctx, &http.Client{Timeout: fetchTimeout}, where, tag)
	if err != nil {
		err = &cli.Coded{Code: cli.ExitUnavailable, Err: fmt.Errorf(
			"cannot fetch prices from %s: %w; the rows stay as they are", where.Host, err)}
	}
	return got, err
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

// update fetches the feeds of the lists, and imports those that have changed. A feed that cannot be
// fetched holds up no other.
func (a *app) update(ctx context.Context, f importFlags, lists []*listFile) error {
	cfg, err := a.Load(ctx)
	if err != nil {
		return err
	}
	known, path := map[string]feed.Fetched{}, "" // as of the last --write
	if cfg.StateDir != "" {
		path = filepath.Join(cfg.StateDir, "feeds.json")
		if text, err := os.ReadFile(path); err == nil {
			json.Unmarshal(text, &known) // without it, every feed is compared
		}
	}
	var changed []*listFile
	var failed error
	responses := map[string]feed.Fetched{} // by URL and ETag: several lists may have one feed
	for _, l := range lists {
		key := l.path + " " + l.table.Feed.URL
		request := l.table.Feed.URL + " " + known[key].ETag
		r, ok := responses[request]
		if !ok {
			if r, err = fetchFeed(ctx, l.table.Feed.URL, known[key].ETag); err != nil {
				failed = errors.Join(failed, err)
			}
			responses[request] = r
		}
		if r.Data != nil && r.Sum != known[key].Sum {
			l.data, l.day = r.Data, today()
			changed = append(changed, l)
			known[key] = r
		}
	}
	err = errors.Join(a.importFeeds(f, changed), failed)
	if err != nil || !f.write || path == "" {
		return err
	}
	text, err := json.Marshal(known)
	if err == nil {
		err = os.MkdirAll(cfg.StateDir, 0o700)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
