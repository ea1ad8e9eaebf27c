package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"quotabudget/internal/cli"
	"quotabudget/internal/costs"
	"quotabudget/internal/untrusted"
)

// fetchedFeed is a feed as its server returned it.
type fetchedFeed struct {
	Data []byte `json:"-"` // nil if the feed still has the ETag of the request
	ETag string
	Sum  string // SHA-256 of Data, in hexadecimal digits
}

// getFeed fetches a feed, unless it still has the ETag. It follows no redirects. The client must
// have a timeout, which also limits the body.
func getFeed(ctx context.Context, client *http.Client, address *url.URL, etag string) (
	fetchedFeed, error) {
	header := http.Header{"User-Agent": {"quotactl"}}
	r := (&http.Request{URL: address, Header: header}).WithContext(ctx)
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	resp, data, err := untrusted.Fetch(*client, r, costs.MaxFeed+1)
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		err = fmt.Errorf("no response within %s", client.Timeout)
	}
	switch {
	case err != nil:
		return fetchedFeed{}, err
	case resp.StatusCode == http.StatusNotModified && etag != "":
		return fetchedFeed{}, nil
	case resp.StatusCode/100 == 3 && resp.Header.Get("Location") != "":
		return fetchedFeed{}, errors.New("it redirects: name the address that it redirects to")
	case resp.StatusCode != http.StatusOK:
		return fetchedFeed{}, errors.New(resp.Status)
	case len(data) > costs.MaxFeed:
		return fetchedFeed{}, fmt.Errorf("it is longer than %d bytes", costs.MaxFeed)
	}
	return fetchedFeed{data, resp.Header.Get("ETag"), fmt.Sprintf("%x", sha256.Sum256(data))}, nil
}

// fetchFeed does what getFeed does, with a timeout, and with an exit code in the error.
func fetchFeed(ctx context.Context, address, etag string) (fetchedFeed, error) {
	where, err := url.Parse(address)
	if err != nil {
		return fetchedFeed{}, cli.Usagef("%w", err)
	}
	fetched, err := getFeed(ctx, &http.Client{Timeout: fetchTimeout}, where, etag)
	if err != nil {
		err = &cli.Coded{Code: cli.ExitUnavailable, Err: fmt.Errorf(
			"cannot fetch prices from %s: %w; the rows stay as they are", where.Host, err)}
	}
	return fetched, err
}
