// Package youtube asks the YouTube Data API for charts.
//
// A Client is the official one on a RoundTripper of the caller's. What it needs from that is
// everything to do with quota and keys: each request, a page or a retry, passes through it once, to
// be charged and given its credential.
package youtube

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/api/option"
	api "google.golang.org/api/youtube/v3"

	"quotabudget/internal/endpoint"
)

// Client asks the upstream. Its fields are set before the first call; it is safe for use by many
// goroutines.
type Client struct {
	Retry   Retry
	Timeout time.Duration // of one attempt, until its answer is read
	// Guard makes each attempt, or returns an error instead, which is not retried unless it is a
	// fault.Error; nil to make them all.
	Guard func(ctx context.Context, attempt func() error) error

	service *api.Service
}

// DefaultTimeout is how long one attempt may take.
const DefaultTimeout = 30 * time.Second

// New makes a client of the upstream at address, such as https://youtube.googleapis.com/. It sends
// no key: rt adds the credential.
func New(ctx context.Context, address string, rt http.RoundTripper) (*Client, error) {
	base, err := endpoint.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("youtube endpoint: %w", err)
	}
	httpClient := &http.Client{
		Transport: keeper{rt},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // or the credential would go wherever it points
		},
	}
	service, err := api.NewService(ctx, option.WithHTTPClient(httpClient),
		option.WithEndpoint(base.String()))
	if err != nil {
		return nil, fmt.Errorf("youtube client: %w", err)
	}
	return &Client{Retry: DefaultRetry(), Timeout: DefaultTimeout, service: service}, nil
}

// call makes attempts, each with a context of its own, until one succeeds or the retries are used
// up.
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
