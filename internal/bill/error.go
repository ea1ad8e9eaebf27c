package bill

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"quotabudget/internal/costs"
	"quotabudget/internal/untrusted"
)

// Kind is what an error means for the caller.
type Kind int

// Kinds of errors.
const (
	Other      Kind = iota
	Away            // no response, or a server error: it may work later
	BadKey          // the key or the token was refused
	NotAllowed      // the account lacks a role
	Disabled        // the project has not enabled the API
	NoProject       // the project does not exist, or is hidden from this account
)

// Error is a failed request.
type Error struct {
	API     string      // name of the API or server
	Meter   costs.Meter // zero if no token was issued
	Status  int         // HTTP; 0 without a response
	Reason  string      // the API's word, or ""
	Message string      // one line
	Kind    Kind
}

// Error returns the API and its message.
func (e *Error) Error() string {
	text := e.API
	switch {
	case e.Status == 0 && e.Kind == Away:
		text += " cannot be reached"
	case e.Status != 0:
		text += fmt.Sprintf(" answered %d", e.Status)
		if e.Reason != "" {
			text += " " + e.Reason
		}
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Host returns the API that is not enabled.
func (e *Error) Host() string {
	u, err := url.Parse(e.Meter.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// unusable returns the error of a response that cannot be relied on.
func unusable(m costs.Meter, message string) error {
	return &Error{API: m.Name, Meter: m, Kind: Other, Message: message}
}

// The places of message and reason in the errors of the upstreams.
var (
	messages = []string{"error.message", "message", "detail", "title", "error"}
	reasons  = []string{"error.status", "error.type", "error.code", "title"}
)

// refusal parses an error response.
func (c *Client) refusal(m costs.Meter, status int, body []byte) error {
	said, _ := untrusted.Decode(body, bounds) // otherwise the status must do
	first := func(paths []string) string {
		for _, path := range paths {
			if text := untrusted.FirstText(said, path); text != "" {
				return untrusted.Plain(c.hide(text))
			}
		}
		return ""
	}
	e := &Error{API: m.Name, Meter: m, Status: status, Message: first(messages)}
	if e.Reason = first(reasons); e.Reason == e.Message {
		e.Reason = ""
	}
	details := append(untrusted.Values(said, "error.details.*.reason"),
		untrusted.Values(said, "error.errors.*.reason")...)
	switch {
	case status >= 500 || status == http.StatusTooManyRequests:
		e.Kind = Away
	case slices.Contains(details, any("SERVICE_DISABLED")),
		slices.Contains(details, any("accessNotConfigured")):
		e.Kind = Disabled
	case status == http.StatusUnauthorized:
		e.Kind = BadKey
	case status == http.StatusForbidden:
		e.Kind = NotAllowed
	case status == http.StatusNotFound:
		e.Kind = NoProject
	}
	return e
}
