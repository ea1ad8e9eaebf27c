package youtube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"google.golang.org/api/googleapi"

	"quotabudget/internal/quota"
)

// Error is a call that the upstream refused, answered badly, or did not answer. It holds no key: none is ever in a URL.
type Error struct {
	Fault
	err error // what the network said, nil when the upstream answered
}

// Error names the status, the reason and the upstream's own sentence.
func (e *Error) Error() string {
	var parts []string
	if e.Status != 0 {
		parts = append(parts, fmt.Sprintf("HTTP %d", e.Status))
	}
	if e.Reason != "" {
		parts = append(parts, e.Reason)
	}
	text := "youtube: " + e.Kind.String()
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, " ") + ")"
	}
	switch {
	case e.err != nil:
		text += ": " + e.err.Error()
	case e.Message != "":
		text += ": " + e.Message
	}
	return text
}

// Unwrap is what the network said.
func (e *Error) Unwrap() error { return e.err }

// KindOf is the kind of an Error anywhere in err. It is false for every other error: a denial of the budget, a context that
// ended, a mistake of the caller.
func KindOf(err error) (Kind, bool) {
	var e *Error
	if !errors.As(err, &e) {
		return Permanent, false
	}
	return e.Kind, true
}

// fromGate tells a refusal of the gate below, which is an answer already and passes as it is.
func fromGate(err error) bool {
	return errors.Is(err, quota.ErrNotSent) || errors.Is(err, quota.ErrExhausted)
}

// translate turns what the official client returned into an Error, but for errors of the gate.
func translate(err error) error {
	var answered *googleapi.Error
	if errors.As(err, &answered) {
		return &Error{Fault: Classify(answered.Code, []byte(answered.Body))}
	}
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err // the rest is the URL, which the caller does not need
	}
	var bad *unusable
	switch {
	case fromGate(err):
		return err
	case errors.As(err, &bad):
		return &Error{Fault{Kind: Permanent, Status: 200}, bad}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Fault{Kind: Transient}, fmt.Errorf("no answer in time: %w", err)}
	case garbled(err):
		return &Error{Fault{Kind: Transient, Status: 200}, fmt.Errorf("the answer is garbled: %w", err)}
	}
	return &Error{Fault{Kind: Transient}, err}
}

// ended is why ctx ended: context.Canceled or context.DeadlineExceeded, and the cause that was given with it.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// garbled reports whether a 2xx answer did not hold the JSON that it should.
func garbled(err error) bool {
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &mistyped) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
