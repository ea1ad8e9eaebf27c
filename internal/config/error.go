package config

import (
	"fmt"
	"strings"
)

// Error is everything that is wrong with the configuration.
type Error struct{ Problems []Problem }

// Problem is one thing that is wrong, and where.
type Problem struct {
	Where string // file or environment variable
	Line  int    // 0 when there is none
	Text  string
}

// Error lists the problems, one a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// String is the problem with its place before it.
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.Where, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s", p.Where, p.Line, p.Text)
}

func fail(where, format string, args ...any) *Error {
	return &Error{Problems: []Problem{{Where: where, Text: fmt.Sprintf(format, args...)}}}
}
