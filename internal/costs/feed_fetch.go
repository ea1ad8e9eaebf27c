package costs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"quotabudget/internal/untrusted"
)

// FetchedFeed is a feed as its server returned it.
type FetchedFeed struct {
	Data []byte `json:"-"` // nil if the feed still has the ETag of the request
	ETag string
	Sum  string // SHA-256 of Data, in hexadecimal digits
}

// FetchFeed fetches a feed, unless it still has the ETag. It follows no redirects. The client must
// have a timeout, which also limits the body.
func FetchFeed(ctx context.Context, client *http.Client, address *url.URL, etag string) (
	FetchedFeed, error) {
	header := http.Header{"User-Agent": {"quotactl"}}
	r := (&http.Request{URL: address, Header: header}).WithContext(ctx)
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	resp, data, err := untrusted.Fetch(*client, r, MaxFeed+1)
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		err = fmt.Errorf("no response within %s", client.Timeout)
	}
	switch {
	case err != nil:
		return FetchedFeed{}, err
	case resp.StatusCode == http.StatusNotModified && etag != "":
		return FetchedFeed{}, nil
	case resp.StatusCode/100 == 3 && resp.Header.Get("Location") != "":
		return FetchedFeed{}, errors.New("it redirects: name the address that it redirects to")
	case resp.StatusCode != http.StatusOK:
		return FetchedFeed{}, errors.New(resp.Status)
	case len(data) > MaxFeed:
		return FetchedFeed{}, fmt.Errorf("it is longer than %d bytes", MaxFeed)
	}
	return FetchedFeed{data, resp.Header.Get("ETag"), fmt.Sprintf("%x", sha256.Sum256(data))}, nil
}
