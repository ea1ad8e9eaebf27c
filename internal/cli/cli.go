// Package cli is shared by the programs' command lines: exit codes, hints, flags, output.
//
// Results go to standard output, everything else to standard error. A message begins with the
// program's name, has no capital letter and no full stop, and is followed by a hint if the user
// can do something.
package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
	"quotabudget/internal/words"
)

// Exit codes of sysexits.h.
const (
	ExitOK     = 0
	ExitFailed = 1
	// wrong flag or argument, unknown reservation or key, or a cost that no limit would ever
	// admit
	ExitUsage       = 64
	ExitUnavailable = 69 // the ledger or the upstream cannot be reached or used
	ExitExhausted   = 75 // try again later
	ExitRefused     = 77 // the upstream refused the credential
	ExitConfig      = 78
)

// answer is the exit code and the hint of an error.
type answer struct {
	err  error
	code int
	hint string
}

// answerTo returns the answer to an error that no other rule matches.
func answerTo(err error) answer {
	for _, a := range []answer{
		{quota.ErrExhausted, ExitExhausted, "status shows when units come free"},
		{quota.ErrCostExceedsLimit, ExitUsage,
			"ask for fewer units at once, or raise the limit in quota.yaml"},
		{quota.ErrUnpriced, ExitUsage,
			"quotactl costs lists every method and its price"},
		{quota.ErrNoBucket, ExitUsage, "quotactl status lists the buckets that have a limit"},
		{quota.ErrReservationShort, ExitUsage,
			"quotactl reservations shows how much is left of each"},
		{quota.ErrNoReservation, ExitUsage,
			"it has expired or is settled; one that became a charge can still be settled; " +
				"quotactl reservations lists the others"},
		{quota.ErrKeyReused, ExitUsage, "a key belongs to one charge: use another key"},
		{quota.ErrSpanShort, ExitUsage, "quotactl log shows what was charged"},
		{quota.ErrNotAllowed, ExitUsage, "see allow: in quota.yaml"},
		{quota.ErrMalformed, ExitUsage, ""},
		{quota.ErrUnreachable, ExitUnavailable,
			"no call is allowed without the ledger; quotactl doctor examines it"},
	} {
		if errors.Is(err, a.err) {
			return a
		}
	}
	for _, unusable := range []error{quota.ErrLedgerUnusable, sqlite.ErrNotDatabase,
		sqlite.ErrReadOnly, sqlite.ErrNewer, sqlite.ErrDamaged, sqlite.ErrFull, sqlite.ErrGone,
		sqlite.ErrBusy} {
		if errors.Is(err, unusable) {
			return answer{code: ExitUnavailable}
		}
	}
	return answer{code: ExitFailed}
}

// kinds returns the answers of the upstream's errors. Any other kind exits with ExitFailed.
func kinds() map[costs.Kind]answer {
	const trouble = "the upstream or the network is failing; what was fetched is kept, and " +
		"the next sweep resumes from there"
	return map[costs.Kind]answer{
		costs.BadCredential: {code: ExitRefused,
			hint: "check in the Google Cloud console that the key exists and may use " +
				"the YouTube Data API v3, and that the API is enabled"},
		costs.Transient: {code: ExitUnavailable, hint: trouble},
		costs.Throttled: {code: ExitUnavailable, hint: trouble},
		costs.Exhausted: {code: ExitExhausted},
	}
}

// refusalOf returns the kind of an error from an upstream's client, such as youtube.Error.
func refusalOf(err error) (costs.Kind, bool) {
	if e, ok := errors.AsType[interface {
		error
		Refusal() costs.Kind
	}](err); ok {
		return e.Refusal(), true
	}
	return "", false
}

// KindCode returns the exit code for an error of the upstream.
func KindCode(k costs.Kind) int {
	if a, ok := kinds()[k]; ok {
		return a.code
	}
	return ExitFailed
}

// Code returns the exit code for err.
func Code(err error) int {
	if err == nil {
		return ExitOK
	}
	if coded, ok := errors.AsType[*Coded](err); ok {
		return coded.Code
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		return ExitUsage
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return ExitConfig
	}
	if kind, ok := refusalOf(err); ok {
		return KindCode(kind)
	}
	return answerTo(err).code
}

// UsageError is a mistake on the command line.
type UsageError struct{ error }

// Unwrap returns the mistake.
func (e *UsageError) Unwrap() error { return e.error }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// HintError is an error with a hint on what to do.
type HintError struct {
	error
	Hint string
}

// Unwrap returns the error without the hint.
func (e *HintError) Unwrap() error { return e.error }

// Hint adds a hint to err.
func Hint(err error, format string, args ...any) error {
	return &HintError{err, fmt.Sprintf(format, args...)}
}

// Misconfigured returns err with ExitConfig and a hint.
func Misconfigured(err error, hint string, args ...any) error {
	return Hint(&Coded{Code: ExitConfig, Err: err}, hint, args...)
}

// Coded sets the exit code. If Err is nil, nothing is printed, because the result is on standard
// output.
type Coded struct {
	Code int
	Err  error
}

// Error returns the text of Err.
func (e *Coded) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Coded) Unwrap() error { return e.Err }

// Report prints err, if any, with its hint to stderr, and returns the exit code.
func Report(stderr io.Writer, program string, err error) int {
	text, hint := inWords(err)
	for line := range strings.Lines(text) {
		fmt.Fprintf(stderr, "%s: %s\n", program, words.Plain(strings.TrimSuffix(line, "\n")))
	}
	if hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", words.Plain(hint))
	}
	return Code(err)
}

// reportJSON prints err like Report, as one line of JSON.
func reportJSON(stderr io.Writer, err error) int {
	if text, hint := inWords(err); text != "" {
		var more []any
		if hint != "" {
			more = []any{"hint", hint}
		}
		slog.New(slog.NewJSONHandler(escaper{stderr}, nil)).Error(text, more...)
	}
	return Code(err)
}

// inWords returns the message and the hint for err; "" if there is nothing to print.
func inWords(err error) (text, hint string) {
	if coded, ok := errors.AsType[*Coded](err); err == nil || ok && coded.Err == nil {
		return "", ""
	}
	text = err.Error()
	if quota.LooksSecret(text) {
		text = "the error is not shown: it holds what looks like an API key"
	}
	if hinted, ok := errors.AsType[*HintError](err); ok {
		return text, hinted.Hint
	}
	if kind, ok := refusalOf(err); ok && kinds()[kind].hint != "" {
		return text, kinds()[kind].hint
	}
	if folder := sqlite.FolderAdvice(err); folder != "" {
		return text, "make the folder: " + folder
	}
	return text, answerTo(err).hint
}
