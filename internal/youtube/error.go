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
	"quotabudget/internal/untrusted"
)

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
	} else if garbled(err) {
		answer.Status, answer.Cause = http.StatusOK, fmt.Errorf("the answer is garbled: %w", err)
	}
	return answer
}

// ended returns why ctx ended: context.Canceled or context.DeadlineExceeded, with its cause.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// garbled reports whether a 2xx response lacked the expected JSON.
func garbled(err error) bool {
	_, malformed := errors.AsType[*json.SyntaxError](err)
	_, mistyped := errors.AsType[*json.UnmarshalTypeError](err)
	return malformed || mistyped || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
