package config

import (
	"fmt"

	"quotabudget/internal/grammar"
)

// Error lists all problems of a configuration.
type Error = grammar.Error

// Problem is one problem and its place.
type Problem = grammar.Problem

func fail(where, format string, args ...any) *Error {
	return &Error{Problems: []Problem{{Where: where, Text: fmt.Sprintf(format, args...)}}}
}
