package fault

import (
	"errors"
	"fmt"
	"strings"
)

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
	text := "youtube: " + e.Kind.String()
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

// KindOf returns the kind of an Error in err's chain. It is false for other errors: a denial of
// the budget, a context that ended, a caller's mistake.
func KindOf(err error) (Kind, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind, true
	}
	return Permanent, false
}
