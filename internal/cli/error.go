package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
	"quotabudget/internal/words"
)

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
	return text, hintFor(err)
}

// hintFor returns the error's own hint, otherwise the table's.
func hintFor(err error) string {
	if hinted, ok := errors.AsType[*HintError](err); ok {
		return hinted.Hint
	}
	if kind, ok := refusalOf(err); ok && kinds()[kind].hint != "" {
		return kinds()[kind].hint
	}
	if folder := sqlite.FolderAdvice(err); folder != "" {
		return "make the folder: " + folder
	}
	for _, a := range answers() {
		if errors.Is(err, a.err) {
			return a.hint
		}
	}
	return ""
}
