package config

import (
	"fmt"
	"strings"
)

// Error lists all problems of a configuration.
type Error struct{ Problems []Problem }

// Problem is one problem and its place.
type Problem struct {
	Where string // file or environment variable
	Line  int    // 0 if unknown
	Text  string
}

// Error returns the problems, one per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// String returns the problem after its place.
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.Where, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s", p.Where, p.Line, p.Text)
}

func fail(where, format string, args ...any) *Error {
	return &Error{Problems: []Problem{{Where: where, Text: fmt.Sprintf(format, args...)}}}
}
