// Package client charges a quota ledger over HTTP: the API of quotactl serve and ingestor serve. It
// needs only the standard library.
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// Client calls one server. Its fields are set once before use.
type Client struct {
	URL   string // such as http://127.0.0.1:8080
	Token string // a token of the server's token_file; "" for none
	// HTTP sends the requests, and follows no redirects. Nil means a timeout of 10 seconds.
	HTTP *http.Client
	// Journal keeps the usage of calls until it is settled, so that a crash loses nothing. Nil
	// keeps nothing.
	Journal *Journal
}

// Cost is the cost of a call: Count calls of Method, Units of Bucket, or Costs, units by bucket.
type Cost struct {
	Credential string            `json:"credential,omitempty"` // required if the server has several
	Method     string            `json:"method,omitempty"`
	Count      int64             `json:"count,omitempty"`
	Bucket     string            `json:"bucket,omitempty"`
	Units      int64             `json:"units,omitempty"`
	Costs      map[string]int64  `json:"costs,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Manual     bool              `json:"manual,omitempty"` // may use the headroom
}

// Decision is the ledger's answer to a charge.
type Decision struct {
	Allowed   bool             `json:"allowed"`
	Units     map[string]int64 `json:"units"`
	Remaining map[string]int64 `json:"remaining"`
	RetryAt   time.Time        `json:"retry_at"` // when the cost will fit; zero if it was allowed
	Never     bool             `json:"never"`    // the cost is larger than a limit
	Limit     string           `json:"limit"`    // the limit that denies
	Entry     string           `json:"entry"`    // ID of the entry in the log
	Replayed  bool             `json:"replayed"`
}

// Held is a hold: units set aside for a call.
type Held struct {
	ID        string           `json:"hold"`
	ExpiresAt time.Time        `json:"expires_at"`
	Units     map[string]int64 `json:"units"`
	Remaining map[string]int64 `json:"remaining"`
}

// Settled is the response to a settlement.
type Settled struct {
	Units     map[string]int64 `json:"units"`
	Remaining map[string]int64 `json:"remaining"`
	Late      bool             `json:"late"` // the hold had already lapsed into a charge
}

// DeniedError is the error of a charge that does not fit now, or never will.
type DeniedError struct{ Decision }

// Error returns the limit that denies and the time to try again.
func (e *DeniedError) Error() string {
	if e.Never {
		return "quota: the cost is larger than " + e.Limit
	}
	return fmt.Sprintf("quota: denied by %s, retry at %s", e.Limit, e.RetryAt.Format(time.RFC3339))
}

// StatusError is the error of any other refusal.
type StatusError struct {
	Status int
	Detail string
}

// Error returns the status and its reason.
func (e *StatusError) Error() string {
	return fmt.Sprintf("quota: %d %s: %s", e.Status, http.StatusText(e.Status), e.Detail)
}

// Charge takes the cost before a call. However often the same key is sent, it charges once; ""
// makes a new key. A denial is a *DeniedError.
func (c *Client) Charge(ctx context.Context, cost Cost, key string) (d Decision, err error) {
	return d, c.send(ctx, http.MethodPost, "/v1/charges", key, cost, &d)
}

// Hold sets the cost aside for a call whose price is known only afterwards. A hold that is not
// settled within ttl becomes a charge, because a call that was sent has usually been billed. A
// denial is a *DeniedError.
func (c *Client) Hold(ctx context.Context, cost Cost, ttl time.Duration, key string) (h Held,
	err error) {
	body := struct {
		Cost
		TTL   string `json:"ttl"`
		Lapse string `json:"lapse"`
	}{cost, ttl.String(), "charge"}
	return h, c.send(ctx, http.MethodPost, "/v1/holds", key, body, &h)
}

// Extend extends a hold to ttl from now, unless it already lasts longer, and returns its expiry.
func (c *Client) Extend(ctx context.Context, hold string, ttl time.Duration) (time.Time, error) {
	var h Held
	body := map[string]string{"ttl": ttl.String()}
	err := c.send(ctx, http.MethodPatch, holdPath(hold), "", body, &h)
	return h.ExpiresAt, err
}

// Settle books the units a call used of a hold, by bucket. The journal keeps them until the server
// has booked them. If the journal cannot be written, Settle fails only if the server does not book
// them either.
func (c *Client) Settle(ctx context.Context, hold string, used map[string]int64) (Settled, error) {
	if c.Journal == nil {
		return c.settle(ctx, hold, used, false)
	}
	unkept := c.Journal.keep(hold, used)
	s, err := c.settle(ctx, hold, used, unkept == nil)
	if err != nil {
		err = errors.Join(err, unkept)
	}
	return s, err
}

// settle books what a call used. kept reports whether the journal has it.
func (c *Client) settle(ctx context.Context, hold string, used map[string]int64, kept bool) (
	s Settled, err error) {
	err = c.send(ctx, http.MethodPost, holdPath(hold)+"/settlements", "",
		map[string]any{"costs": used, "charge_lost": true}, &s)
	if kept && final(err) {
		err = errors.Join(err, c.Journal.drop(hold))
	}
	return s, err
}

// final reports whether retrying a settlement is pointless: it is booked, or the server refuses it
// for good. After any other refusal, such as of a token or a slow request, a retry can succeed.
func final(err error) bool {
	var refused *StatusError
	return err == nil || errors.As(err, &refused) && (refused.Status == http.StatusNotFound ||
		refused.Status == http.StatusConflict || refused.Status == http.StatusUnprocessableEntity)
}

// Release returns the rest of a hold, for a call that was never sent.
func (c *Client) Release(ctx context.Context, hold string) (map[string]int64, error) {
	var out struct {
		Released map[string]int64 `json:"released"`
	}
	return out.Released, c.send(ctx, http.MethodDelete, holdPath(hold), "", nil, &out)
}

// Replay settles the journal entries of an earlier process. Call it at the start.
func (c *Client) Replay(ctx context.Context) error {
	if c.Journal == nil {
		return nil
	}
	lines, err := c.Journal.open()
	for _, l := range lines {
		_, failed := c.settle(ctx, l.Hold, l.Used, true)
		err = errors.Join(err, failed)
	}
	return err
}

func holdPath(hold string) string { return "/v1/holds/" + url.PathEscape(hold) }

// tries is the number of attempts at a request.
const tries = 3

// send sends a request. It retries with the same key if the response is lost, or if the ledger or
// the server behind a gateway is unavailable.
func (c *Client) send(ctx context.Context, method, path, key string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	if key == "" {
		key = rand.Text()
	}
	for try := 1; ; try++ {
		again, err := c.once(ctx, method, path, key, body, out)
		if !again || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(try) * 200 * time.Millisecond):
		}
	}
}

// once sends a request once. again reports whether a retry may help.
func (c *Client) once(ctx context.Context, method, path, key string, body []byte, out any) (
	again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path,
		bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	sender := http.Client{Timeout: 10 * time.Second}
	if c.HTTP != nil {
		sender = *c.HTTP
	}
	sender.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // following it would drop the body
	}
	response, err := sender.Do(r)
	if err != nil {
		return true, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return true, err
	}
	if response.StatusCode/100 == 2 {
		if json.Unmarshal(text, out) == nil && !reflect.ValueOf(out).Elem().IsZero() {
			return false, nil
		}
		return true, fmt.Errorf("quota: %s: %w", response.Status, errGateway)
	}
	switch response.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	err = refusal(response.StatusCode, text)
	return again || errors.Is(err, errGateway), err
}

// errGateway reports that another server answered instead of the ledger's, such as a gateway.
var errGateway = errors.New("not a response from the ledger")

func refusal(status int, text []byte) error {
	var problem struct {
		Decision
		Detail string `json:"detail"`
	}
	json.Unmarshal(text, &problem) // a proxy in front of the server may send any body
	if problem.Limit != "" {
		return &DeniedError{problem.Decision}
	}
	if problem.Detail == "" {
		return fmt.Errorf("quota: %d %s: %w", status, http.StatusText(status), errGateway)
	}
	return &StatusError{status, problem.Detail}
}
