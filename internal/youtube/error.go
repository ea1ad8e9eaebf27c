package youtube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"google.golang.org/api/googleapi"

	"quotabudget/internal/quota"
	"quotabudget/internal/youtube/bounds"
	"quotabudget/internal/youtube/fault"
)

// fromGate tells a refusal of the gate below, which is an answer already and passes as it is.
func fromGate(err error) bool {
	return errors.Is(err, quota.ErrNotSent) || errors.Is(err, quota.ErrExhausted)
}

// translate turns what the official client returned into a fault.Error, but for errors of the gate.
func translate(err error) error {
	var answered *googleapi.Error
	if errors.As(err, &answered) {
		return &fault.Error{Fault: fault.Classify(answered.Code, []byte(answered.Body))}
	}
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err // the rest is the URL, which the caller does not need
	}
	if fromGate(err) {
		return err
	}
	answer := &fault.Error{Cause: err}
	var bad *bounds.Unusable
	switch answer.Kind = fault.Transient; {
	case errors.As(err, &bad):
		answer.Kind, answer.Status, answer.Cause = fault.Permanent, http.StatusOK, bad
	case errors.Is(err, context.DeadlineExceeded):
		answer.Cause = fmt.Errorf("no answer in time: %w", err)
	case garbled(err):
		answer.Status, answer.Cause = http.StatusOK, fmt.Errorf("the answer is garbled: %w", err)
	}
	return answer
}

// ended is why ctx ended: context.Canceled or context.DeadlineExceeded, and the cause that was
// given with it.
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
	return errors.As(err, &syntax) || errors.As(err, &mistyped) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
