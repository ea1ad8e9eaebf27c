package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// Fetch fetches a feed. It follows no redirect, which could lead to another host. The client has a
// timeout, which bounds the body, too.
func Fetch(ctx context.Context, client *http.Client, address *url.URL) ([]byte, error) {
	r := (&http.Request{URL: address, Header: http.Header{"User-Agent": {"quotactl"}}}).WithContext(ctx)
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := direct.Do(r)
	if err != nil {
		return nil, fetchError(client, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode/100 == 3:
		return nil, errors.New("it redirects: name the address that it redirects to")
	case resp.StatusCode != http.StatusOK:
		return nil, errors.New(resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, MaxBytes+1))
	switch {
	case err != nil:
		return nil, fetchError(client, err)
	case len(data) > MaxBytes:
		return nil, fmt.Errorf("it is longer than %d bytes", MaxBytes)
	}
	return data, nil
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
