package cloudquota

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"quotabudget/internal/bounds"
)

// Kind is what an error means for whoever asked.
type Kind int

// The kinds of errors.
const (
	Other      Kind = iota
	Away            // no answer, or a server's failure: it may work later
	BadKey          // the key or the token was refused
	NotAllowed      // the account lacks a role
	Disabled        // the project has not enabled the API that was asked
	NoProject       // there is no such project, or not for this account
)

// Error is an answer that is none.
type Error struct {
	API     string // that was asked, by its name
	Status  int    // HTTP; 0 without an answer
	Reason  string // in its words; "" for none
	Message string // one line
	Kind    Kind
}

// Error says who answered what.
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

// Role is what the account lacks.
func (e *Error) Role() string {
	if e.API == cloudMonitoring {
		return "roles/monitoring.viewer"
	}
	return "roles/serviceusage.serviceUsageViewer"
}

// Host is the API that is not enabled.
func (e *Error) Host() string {
	if e.API == cloudMonitoring {
		return "monitoring.googleapis.com"
	}
	return "serviceusage.googleapis.com"
}

// refusal reads an error of an API.
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
	_ = json.Unmarshal(body, &answer) // else its status says enough
	said := answer.Error
	e := &Error{API: api, Status: status, Reason: bounds.Plain(said.Status),
		Message: bounds.Plain(said.Message)}
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
