package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// fetched is what the server of a feed returned when its rows were last written.
type fetched struct{ ETag, Sum string }

// readFeed reads a file or fetches a URL, and returns its day.
func readFeed(ctx context.Context, source string) (data []byte, day string, err error) {
	if strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://") {
		data, _, err = fetchFeed(ctx, source, "")
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

// fetchFeed fetches a feed; nil data if it has the ETag still. It follows no redirect, which could
// lead to another host.
func fetchFeed(ctx context.Context, address, tag string) (data []byte, next fetched, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, next, cli.Usagef("%w", err)
	}
	r.Header.Set("User-Agent", "quotactl")
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	host := r.URL.Host
	away := func(err error) error {
		return &cli.Coded{Code: cli.ExitUnavailable,
			Err: fmt.Errorf("cannot fetch prices from %s: %w; the rows stay as they are", host, err)}
	}
	resp, err := client.Do(r)
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no response within %s", fetchTimeout)
	}
	if err != nil {
		return nil, next, away(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified && tag != "" {
		return nil, next, nil
	}
	if resp.StatusCode/100 == 3 {
		return nil, next, away(errors.New("it redirects: name the address that it redirects to"))
	}
	if resp.StatusCode != http.StatusOK {
		return nil, next, away(errors.New(resp.Status))
	}
	data, err = io.ReadAll(io.LimitReader(resp.Body, feed.MaxBytes+1))
	switch {
	case err != nil:
		return nil, next, away(err)
	case len(data) > feed.MaxBytes:
		return nil, next, away(fmt.Errorf("it is longer than %d bytes", feed.MaxBytes))
	}
	sum := sha256.Sum256(data)
	return data, fetched{resp.Header.Get("ETag"), hex.EncodeToString(sum[:])}, nil
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
	known, path := map[string]fetched{}, ""
	if cfg.StateDir != "" {
		path = filepath.Join(cfg.StateDir, "feeds.json")
		if text, err := os.ReadFile(path); err == nil {
			json.Unmarshal(text, &known) // without it, every feed is compared
		}
	}
	var changed []*listFile
	var failed error
	type response struct {
		data []byte
		fetched
	}
	responses := map[string]response{} // by URL and ETag: several lists may have one feed
	for _, l := range lists {
		key := l.path + " " + l.table.Feed.URL
		request := l.table.Feed.URL + " " + known[key].ETag
		r, ok := responses[request]
		if !ok {
			if r.data, r.fetched, err = fetchFeed(ctx, l.table.Feed.URL, known[key].ETag); err != nil {
				failed = errors.Join(failed, err)
			}
			responses[request] = r
		}
		if r.data != nil && r.Sum != known[key].Sum {
			l.data, l.day = r.data, today()
			changed = append(changed, l)
			known[key] = r.fetched
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
