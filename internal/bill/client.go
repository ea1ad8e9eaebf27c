// Package bill compares the ledger with the upstream's own count and limits.
//
// The price list of an upstream says which requests report them. Google's are in Cloud Monitoring
// and Service Usage, whose generated clients, with gRPC and OpenTelemetry, would enlarge the
// program by half. The tests compare this package with them.
package bill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/untrusted"
)

// Client asks an upstream about one account. Its fields are set before use.
type Client struct {
	Table    *costs.Table
	Endpoint string // URL of the upstream, ending in a slash
	Project  string // "" for that of the service account, or none

	// Account is for requests with a service account, and Cloud the URL that they are sent to in
	// place of Google's, ending in a slash; "" for Google.
	Account *Account
	Cloud   string
	// AdminKey is for requests with an admin key.
	AdminKey string
	// Gate sends requests with the API key, which it adds, and charges them.
	Gate Gate
	// Timeout is the timeout of one request; 30 seconds by default.
	Timeout time.Duration

	cloud   *http.Client
	answers map[string][]any // by URL, the pages
}

// Gate is a meter.Transport.
type Gate interface {
	http.RoundTripper
	// Open returns the number of calls that are not booked yet.
	Open() int
}

// booked waits until the gate has booked the calls and has learned what the responses report.
func (c *Client) booked(ctx context.Context) error {
	for c.Gate != nil && c.Gate.Open() > 0 {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// ProjectName returns the ID of the project, or "" if it is not known.
func (c *Client) ProjectName() string {
	if c.Project == "" && c.Account != nil {
		return c.Account.Project
	}
	return c.Project
}

// Asks reports whether the upstream of a price list reports something to a key of that kind.
func Asks(t *costs.Table, key string) bool {
	return slices.ContainsFunc(t.Meters(), func(m costs.Meter) bool { return m.Key == key })
}

// Bounds of the pages to read.
const (
	maxPages = 100
	maxPage  = 8 << 20
)

var bounds = untrusted.Bounds{Values: 1 << 20, Depth: 32, Items: 100_000, Text: 64 << 10}

// ask returns the pages of a report on the time from the first moment up to the second. It asks
// for the same report once. The error is an *Error, that of ctx, or that of the gate.
func (c *Client) ask(ctx context.Context, m costs.Meter, from, until time.Time) ([]any, error) {
	address := c.address(m, from, until)
	key := m.Verb + " " + address + " " + m.Body
	if pages, ok := c.answers[key]; ok {
		return pages, nil
	}
	var pages []any
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	for next, last := address, ""; ; {
		page, err := c.page(ctx, m, next)
		if err = cmp.Or(err, c.booked(ctx)); err != nil {
			return nil, err
		}
		pages = append(pages, page)
		token, _ := untrusted.FindText(page, m.Next.Path)
		more, _ := untrusted.Find(page, m.Next.More)
		switch {
		case m.Next.Path == "" || token == "" || m.Next.More != "" && more != true:
			if c.answers == nil {
				c.answers = map[string][]any{}
			}
			c.answers[key] = pages
			return pages, nil
		case token == last:
			return nil, unusable(m, "its pages do not end: one names itself as the next")
		case len(pages) == maxPages:
			return nil, unusable(m, fmt.Sprintf("more than %d pages", maxPages))
		}
		last = token
		next = address + separator + url.Values{m.Next.Parameter: {token}}.Encode()
	}
}

// address returns the URL of a request.
func (c *Client) address(m costs.Meter, from, until time.Time) string {
	moment := func(at time.Time) string {
		if m.Times == costs.FormEpoch {
			return strconv.FormatInt(at.Unix(), 10)
		}
		return at.UTC().Format(time.RFC3339)
	}
	address := strings.NewReplacer(costs.From, moment(from), costs.Until, moment(until),
		costs.Seconds, strconv.FormatInt(int64(until.Sub(from).Seconds()), 10),
		"{project}", url.PathEscape(c.ProjectName()),
		"{service}", url.PathEscape(c.Table.Service)).Replace(m.URL)
	if strings.HasPrefix(address, "/") {
		return c.Endpoint + address[1:]
	}
	if c.Cloud != "" {
		_, rest, _ := strings.Cut(strings.TrimPrefix(address, "https://"), "/")
		return c.Cloud + rest
	}
	return address
}

// page requests one page and decodes it.
func (c *Client) page(ctx context.Context, m costs.Meter, address string) (any, error) {
	r, err := http.NewRequestWithContext(ctx, m.Verb, address, strings.NewReader(m.Body))
	if err != nil {
		return nil, unusable(m, "its address is not valid")
	}
	for name, value := range m.Headers {
		r.Header.Set(name, value)
	}
	response, body, err := untrusted.Fetch(c.client(ctx, m, r), r, maxPage+1)
	switch {
	case err != nil:
		return nil, c.away(ctx, m, err)
	case len(body) > maxPage:
		return nil, unusable(m, "its response is too long")
	case response.StatusCode != http.StatusOK:
		return nil, c.refusal(m, response.StatusCode, body)
	case strings.HasPrefix(strings.TrimSpace(string(body)), "<"):
		return nil, &Error{API: m.Name, Kind: Away, Meter: m,
			Message: "a web page came in place of its response"}
	}
	page, err := untrusted.Decode(body, bounds)
	if err != nil {
		return nil, unusable(m, "cannot parse its response")
	}
	return page, nil
}

// client returns the HTTP client for a request. If the meter needs an admin key, it adds the key to
// the request.
func (c *Client) client(ctx context.Context, m costs.Meter, r *http.Request) http.Client {
	out := http.Client{Timeout: cmp.Or(c.Timeout, timeout)}
	switch at := c.Table.Credential; m.Key {
	case "service_account":
		if c.cloud == nil {
			tokenURL := c.Account.tokenURL
			if c.Cloud != "" {
				tokenURL = c.Cloud + "token"
			}
			c.cloud = c.Account.client(context.WithoutCancel(ctx), tokenURL)
		}
		return *c.cloud
	case "api_key":
		out.Transport = c.Gate
	default:
		r.Header.Set(at.Header, at.Prefix+c.AdminKey)
	}
	return out
}

// away returns the error of a request that got no response.
func (c *Client) away(ctx context.Context, m costs.Meter, err error) error {
	refused, noToken := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case noToken:
		return tokenError(refused)
	case errors.Is(err, quota.ErrNotSent): // the gate denied it, or cannot reach the ledger
		return err
	}
	text := c.hide(strings.TrimPrefix(err.Error(), "oauth2: "))
	return &Error{API: m.Name, Message: untrusted.Plain(text), Kind: Away, Meter: m}
}

// hide removes the admin key from a text: an upstream may repeat what it was sent.
func (c *Client) hide(text string) string {
	if c.AdminKey == "" {
		return text
	}
	return strings.ReplaceAll(text, c.AdminKey, "[key]")
}
