package feed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// Fetched is a feed as its server returned it.
type Fetched struct {
	Data      []byte `json:"-"` // nil if it has the ETag still
	ETag, Sum string
}

// Fetch fetches a feed, unless it has the ETag still. It follows no redirect, which could lead to
// another host. The client has a timeout, which bounds the body, too.
func Fetch(ctx context.Context, client *http.Client, address *url.URL, tag string) (Fetched, error) {
	r := (&http.Request{URL: address, Header: http.Header{"User-Agent": {"quotactl"}}}).WithContext(ctx)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := direct.Do(r)
	if err != nil {
		return Fetched{}, fetchError(client, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && tag != "":
		return Fetched{}, nil
	case resp.StatusCode/100 == 3:
		return Fetched{}, errors.New("it redirects: name the address that it redirects to")
	case resp.StatusCode != http.StatusOK:
		return Fetched{}, errors.New(resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, MaxBytes+1))
	switch {
	case err != nil:
		return Fetched{}, fetchError(client, err)
	case len(data) > MaxBytes:
		return Fetched{}, fmt.Errorf("it is longer than %d bytes", MaxBytes)
	}
	sum := sha256.Sum256(data)
	return Fetched{data, resp.Header.Get("ETag"), hex.EncodeToString(sum[:])}, nil
}

func fetchError(client *http.Client, err error) error {
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return fmt.Errorf("no response within %s", client.Timeout)
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}
