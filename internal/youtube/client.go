// Package youtube reads charts from the YouTube Data API.
//
// A Client is the official client on a RoundTripper of the caller's. That RoundTripper does
// everything to do with quota and keys: each request, a page or a retry, passes through it once
// to be charged and to get its credential.
package youtube

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"google.golang.org/api/option"
	api "google.golang.org/api/youtube/v3"

	"quotabudget/internal/costs"
	"quotabudget/internal/untrusted"
)

// Client calls the upstream. Its fields are set before the first call; it is safe for concurrent
// use.
type Client struct {
	Retry   Retry
	Timeout time.Duration // of one attempt, until its response is read
	// Guard runs each attempt, or returns an error instead. Such an error is not retried unless
	// it is an Error. nil runs them all.
	Guard func(ctx context.Context, attempt func() error) error

	service *api.Service
}

// DefaultTimeout is the timeout of one attempt.
const DefaultTimeout = 30 * time.Second

// New returns a client of the upstream at address, such as https://youtube.googleapis.com/. It
// sends no key: rt adds the credential.
func New(ctx context.Context, address string, rt http.RoundTripper) (*Client, error) {
	base, err := costs.ParseEndpoint(address)
	if err != nil {
		return nil, fmt.Errorf("youtube endpoint: %w", err)
	}
	httpClient := &http.Client{
		Transport: keeper{rt},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a redirect must not receive the credential
		},
	}
	service, err := api.NewService(ctx, option.WithHTTPClient(httpClient),
		option.WithEndpoint(base.String()))
	if err != nil {
		return nil, fmt.Errorf("youtube client: %w", err)
	}
	return &Client{Retry: DefaultRetry(), Timeout: DefaultTimeout, service: service}, nil
}

// call makes attempts, each with its own context, until one succeeds or no retry is left.
func (c *Client) call(ctx context.Context, attempt func(context.Context) error) error {
	once := func() error {
		ctx, cancel := context.WithTimeout(ctx, c.Timeout)
		defer cancel()
		return translate(attempt(ctx))
	}
	return c.Retry.do(ctx, func() error {
		if c.Guard == nil {
			return once()
		}
		return c.Guard(ctx, once)
	})
}

// keeper reads the responses within bounds. It hands the body of a success to the caller and an
// empty object to the official client, whose types refuse a page for any mistyped counter, and do
// not distinguish a counter of zero from a missing one.
type keeper struct{ next http.RoundTripper }

// bodyKey is the context key of a *[]byte that receives the body.
type bodyKey struct{}

// cutError is an error while reading the body of a response with a status.
type cutError struct {
	error
	status int
}

func (e *cutError) Unwrap() error { return e.error }

func (k keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := k.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := untrusted.Read(res.StatusCode/100 == 2, res.Body)
	res.Body.Close()
	if err != nil {
		return nil, &cutError{err, res.StatusCode}
	}
	if into, ok := r.Context().Value(bodyKey{}).(*[]byte); ok && res.StatusCode/100 == 2 {
		*into, body = body, []byte("{}")
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}
