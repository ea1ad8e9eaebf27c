// Package youtube asks the YouTube Data API for charts, videos, categories and regions, and says what its errors mean.
//
// A Client is the official one on a RoundTripper of the caller's. What it needs from that is everything to do with quota and
// keys: each request, a page or a retry, passes through it once, to be charged and given its credential.
package youtube

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/api/option"
	api "google.golang.org/api/youtube/v3"
)

// Client asks the upstream. Its fields are set before the first call; it is safe for use by many goroutines.
type Client struct {
	Retry   Retry
	Timeout time.Duration // of one attempt, answer read; 0 for none

	service *api.Service
}

// DefaultTimeout is how long one attempt may take.
const DefaultTimeout = 30 * time.Second

// New makes a client of the upstream at endpoint, such as https://youtube.googleapis.com/. It sends no key: rt adds the
// credential.
func New(ctx context.Context, endpoint string, rt http.RoundTripper) (*Client, error) {
	base, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	httpClient := &http.Client{
		Transport: keeper{rt},
		// A redirect would carry the credential to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	service, err := api.NewService(ctx, option.WithHTTPClient(httpClient), option.WithEndpoint(base))
	if err != nil {
		return nil, fmt.Errorf("youtube client: %w", err)
	}
	return &Client{Retry: DefaultRetry(), Timeout: DefaultTimeout, service: service}, nil
}

// parseEndpoint checks the address, without repeating what might be a secret in it, and ends it with a slash, because the
// official client would drop its last segment otherwise.
func parseEndpoint(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return "", fmt.Errorf("youtube endpoint: not a URL")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return "", fmt.Errorf("youtube endpoint: write it as https://youtube.googleapis.com/")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("youtube endpoint: no user, query or fragment goes with it; the key is configured apart")
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u.String(), nil
}

// call makes attempts, each with a context of its own, until one succeeds or the retries are used up.
func (c *Client) call(ctx context.Context, attempt func(context.Context) error) error {
	return c.Retry.do(ctx, func() error {
		once, cancel := ctx, func() {}
		if c.Timeout > 0 {
			once, cancel = context.WithTimeout(ctx, c.Timeout)
		}
		defer cancel()
		if err := attempt(once); err != nil {
			return translate(err)
		}
		return nil
	})
}
