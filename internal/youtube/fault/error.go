package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Error is a call that the upstream refused, answered badly, or did not answer. It holds no key:
// none is ever in a URL.
type Error struct {
	Fault
	Cause error // what the network said; nil when the upstream answered
}

// Error names the status, the reason and the upstream's own sentence.
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

// Unwrap is what the network said.
func (e *Error) Unwrap() error { return e.Cause }

// KindOf is the kind of an Error anywhere in err. It is false for every other error: a denial of
// the budget, a context that ended, a mistake of the caller.
func KindOf(err error) (Kind, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind, true
	}
	return Permanent, false
}
