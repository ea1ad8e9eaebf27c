package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"quotabudget/internal/quota"
	"quotabudget/internal/youtube/fault"
)

// UsageError is a mistake on the command line.
type UsageError struct{ error }

// Unwrap is what the mistake is.
func (e *UsageError) Unwrap() error { return e.error }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// HintError is an error with what to do about it.
type HintError struct {
	error
	Hint string
}

// Unwrap is the error without the hint.
func (e *HintError) Unwrap() error { return e.error }

// Hint adds to err what to do about it.
func Hint(err error, format string, args ...any) error {
	return &HintError{err, fmt.Sprintf(format, args...)}
}

// Coded sets the exit code. Without an Err nothing is printed: standard output has the result.
type Coded struct {
	Code int
	Err  error
}

// Error is the text of Err.
func (e *Coded) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap is Err.
func (e *Coded) Unwrap() error { return e.Err }

// Report prints err and its hint to stderr, if it is one, and returns the exit code.
func Report(stderr io.Writer, program string, err error) int {
	text, hint := inWords(err)
	for line := range strings.Lines(text) {
		fmt.Fprintf(stderr, "%s: %s\n", program, Plain(strings.TrimSuffix(line, "\n")))
	}
	if hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", Plain(hint))
	}
	return Code(err)
}

// reportJSON is Report in one line, like those of the log.
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

// inWords is the message for err and its hint; "" if there is nothing to print.
func inWords(err error) (text, hint string) {
	if coded, ok := errors.AsType[*Coded](err); err == nil || ok && coded.Err == nil {
		return "", ""
	}
	text = err.Error()
	if quota.LooksSecret(text) {
		text = "the error is not shown: it holds what looks like an API key"
	}
	return text, hintFor(err)
}

// hintFor is the hint of the error itself, else that of the table.
func hintFor(err error) string {
	if hinted, ok := errors.AsType[*HintError](err); ok {
		return hinted.Hint
	}
	if kind, ok := fault.KindOf(err); ok && kinds()[kind].hint != "" {
		return kinds()[kind].hint
	}
	for _, a := range answers() {
		if errors.Is(err, a.err) {
			return a.hint
		}
	}
	return ""
}
