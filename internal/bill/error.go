package bill

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

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
	API     string // name of the API
	Status  int    // HTTP; 0 without a response
	Reason  string // the API's word, or ""
	Message string // one line
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

// Role returns the role that the account lacks.
func (e *Error) Role() string {
	if e.API == cloudMonitoring {
		return "roles/monitoring.viewer"
	}
	return "roles/serviceusage.serviceUsageViewer"
}

// Host returns the API that is not enabled.
func (e *Error) Host() string {
	if e.API == cloudMonitoring {
		return "monitoring.googleapis.com"
	}
	return "serviceusage.googleapis.com"
}

// refusal parses an error response.
func refusal(api string, status int, body []byte) error {
	var answer struct {
		Error struct {
			Message string `json:"message"`
			Status  string `json:"status"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
			Details []struct {
				Reason string `json:"reason"`
			} `json:"details"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &answer) // otherwise the status must do
	said := answer.Error
	e := &Error{API: api, Status: status, Reason: untrusted.Plain(said.Status),
		Message: untrusted.Plain(said.Message)}
	var reasons []string
	for _, d := range said.Details {
		reasons = append(reasons, d.Reason)
	}
	for _, d := range said.Errors {
		reasons = append(reasons, d.Reason)
	}
	switch {
	case status >= 500 || status == http.StatusTooManyRequests:
		e.Kind = Away
	case slices.Contains(reasons, "SERVICE_DISABLED"),
		slices.Contains(reasons, "accessNotConfigured"):
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
