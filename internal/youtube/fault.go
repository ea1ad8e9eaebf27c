package youtube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/googleapi"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/untrusted"
)

// Kind is what an error of the upstream means for the caller.
type Kind = costs.Kind

const (
	Permanent          = costs.Permanent     // the request fails however often it is sent
	Transient          = costs.Transient     // the upstream or the network failed: retry a few times
	Throttled          = costs.Throttled     // too many requests within a minute: retry after a while
	Exhausted          = costs.Exhausted     // the day's quota is used up: retry after the reset
	BadCredential      = costs.BadCredential // the key is wrong, missing or blocked, or the API is off
	BadRegion     Kind = "bad region"        // the upstream does not serve the region: drop it
	NoChart       Kind = "no chart"          // the region or category has no chart today
	BadPageToken  Kind = "bad page token"    // the page token expired: read the chart from its start
)

// Fault is the content of an error response.
type Fault struct {
	Kind   Kind
	Status int // HTTP status
	// The other fields are zero if the response does not contain them.
	Reason      string    // the most specific one: quotaExceeded, API_KEY_INVALID
	Message     string    // one line of plain text, cut to 300 characters
	Metric      string    // the quota metric that is exhausted or throttled
	WindowStart time.Time // of the quota window
}

// Classify classifies a response with a status other than 2xx, by the refusals in the built-in
// price list.
func Classify(status int, body []byte) Fault {
	said := prices().Refusal(status, http.Header{}, body)
	// The price list's word for a refusal is the kind, if there is such a kind.
	kind := cmp.Or(Kind(said.As), said.Kind)
	if !slices.Contains([]Kind{Transient, Throttled, Exhausted, BadCredential, BadRegion, NoChart,
		BadPageToken}, kind) {
		kind = Permanent
	}
	return Fault{Kind: kind, Status: status, Reason: said.Reason, Message: said.Message,
		Metric: said.Metric, WindowStart: said.Since}
}

// prices returns the price list of this API.
var prices = sync.OnceValue(func() *costs.Table {
	t, err := costs.Shipped().Upstream("youtube")
	if err != nil {
		panic(err) // a test reads it
	}
	return t
})

// Error is a call that the upstream refused, answered badly, or did not answer. It contains no
// key, because URLs contain none.
type Error struct {
	Fault
	Cause error // the network's error; nil if the upstream answered
}

// Error returns the status, the reason and the upstream's message.
func (e *Error) Error() string {
	status := ""
	if e.Status != 0 {
		status = fmt.Sprintf("HTTP %d", e.Status)
	}
	text := "youtube: " + string(e.Kind)
	if said := strings.TrimSpace(status + " " + e.Reason); said != "" {
		text += " (" + said + ")"
	}
	switch {
	case e.Cause != nil:
		text += ": " + e.Cause.Error()
	case e.Message != "":
		text += ": " + e.Message
	}
	return text
}

// Unwrap returns the network's error.
func (e *Error) Unwrap() error { return e.Cause }

// Refusal returns the kind.
func (e *Error) Refusal() Kind { return e.Kind }

// KindOf returns the kind of an Error in err's chain. It is false for other errors: a denial of
// the budget, a context that ended, a caller's mistake.
func KindOf(err error) (Kind, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind, true
	}
	return Permanent, false
}

// translate converts the official client's error into an Error. It returns refusals of the
// gate unchanged.
func translate(err error) error {
	if answered, ok := errors.AsType[*googleapi.Error](err); ok {
		return &Error{Fault: Classify(answered.Code, []byte(answered.Body))}
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		err = sent.Err // drop the URL, which the caller does not need
	}
	if err == nil || errors.Is(err, quota.ErrNotSent) || errors.Is(err, quota.ErrExhausted) {
		return err
	}
	answer := &Error{Fault: Fault{Kind: Transient}, Cause: err}
	if bad, ok := errors.AsType[*untrusted.Unusable](err); ok {
		answer.Kind, answer.Status, answer.Cause = Permanent, http.StatusOK, bad
	} else if errors.Is(err, context.DeadlineExceeded) {
		answer.Cause = fmt.Errorf("no answer in time: %w", err)
	} else if cut, ok := errors.AsType[*cutError](err); ok {
		answer.Status, answer.Cause = cut.status, fmt.Errorf("the answer is garbled: %w", err)
	} else if _, malformed := errors.AsType[*json.SyntaxError](err); malformed {
		answer.Status, answer.Cause = http.StatusOK, fmt.Errorf("the answer is garbled: %w", err)
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		answer.Cause = fmt.Errorf("the connection ended before an answer: %w", err)
	}
	return answer
}
