package feed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"quotabudget/internal/untrusted"
)

// Fetch fetches a feed. It follows no redirect. The client has a timeout, which bounds the body,
// too.
func Fetch(ctx context.Context, client *http.Client, address *url.URL) ([]byte, error) {
	r := (&http.Request{URL: address, Header: http.Header{"User-Agent": {"quotactl"}}}).WithContext(ctx)
	resp, data, err := untrusted.Fetch(*client, r, MaxBytes+1)
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		err = fmt.Errorf("no response within %s", client.Timeout)
	}
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode/100 == 3:
		return nil, errors.New("it redirects: name the address that it redirects to")
	case resp.StatusCode != http.StatusOK:
		return nil, errors.New(resp.Status)
	case len(data) > MaxBytes:
		return nil, fmt.Errorf("it is longer than %d bytes", MaxBytes)
	}
	return data, nil
}
