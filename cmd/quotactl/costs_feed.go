package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
)

// fetchTimeout bounds the fetch of a feed.
const fetchTimeout = 30 * time.Second

// readFeed reads a file or fetches a URL, and returns its day.
func readFeed(ctx context.Context, source string) (data []byte, day string, err error) {
	if strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://") {
		fetched, err := fetchFeed(ctx, source, "")
		return fetched.Data, today(), err
	}
	data, err = config.ReadPipe(ctx, source, costs.MaxFeed)
	if err != nil {
		return nil, "", err
	}
	day = today()
	if info, err := os.Stat(source); err == nil {
		day = info.ModTime().UTC().Format(time.DateOnly)
	}
	return data, day, nil
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
		flags := f
		flags.upstream = name
		l, err := a.listFile(ctx, flags)
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

// writtenFeed is a feed as of the last --write, and the digest of the list after it.
type writtenFeed struct {
	fetchedFeed
	List string
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// update fetches the lists' feeds and imports those that have changed since the last --write, or
// whose list has. A failed fetch does not affect the other feeds.
func (a *app) update(ctx context.Context, f importFlags, lists []*listFile) error {
	cfg, err := a.Load(ctx)
	if err != nil {
		return err
	}
	path := filepath.Join(cfg.StateDir, "feeds.json")
	written := map[string]writtenFeed{} // by list and URL: a change of the list's URL counts
	if text, err := os.ReadFile(path); err == nil && cfg.StateDir != "" {
		json.Unmarshal(text, &written) // if it is damaged, every feed is compared
	}
	var failed error
	responses := map[string]fetchedFeed{} // by URL and ETag: several lists may have one feed
	changed := slices.DeleteFunc(lists, func(l *listFile) bool {
		address, name := l.table.Feed.URL, l.path+" "+l.table.Feed.URL
		before := written[name]
		if f.check || before.List != digest(l.text) {
			before = writtenFeed{}
		}
		request := address + " " + before.ETag
		r, asked := responses[request]
		if !asked {
			r, err = fetchFeed(ctx, address, before.ETag)
			failed, responses[request] = errors.Join(failed, err), r
		}
		if r.Data == nil || r.Sum == before.Sum {
			return true
		}
		l.data, l.day, written[name] = r.Data, today(), writtenFeed{fetchedFeed: r}
		return false
	})
	if failed != nil && len(changed) == 0 {
		return failed
	}
	err = errors.Join(a.importFeeds(f, changed), failed)
	if err != nil || !f.write || cfg.StateDir == "" {
		return err
	}
	for _, l := range changed {
		name := l.path + " " + l.table.Feed.URL
		written[name] = writtenFeed{written[name].fetchedFeed, digest(l.text)}
	}
	text, err := json.Marshal(written)
	if err == nil {
		err = os.MkdirAll(cfg.StateDir, 0o700)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
