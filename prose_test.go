package quotabudget_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dialect matches words that comments, messages and documents must not use: they do not name the
// actor, or are out of use. The list may grow.
var dialect = regexp.MustCompile(`(?i)\b(told|whoever|anew|of\s+late|in\s+vain|one's\s+own|` +
	`is\s+none\s+of|is\s+that\s+of|who\s+asks|who\s+comes|as\s+little\s+as)\b`)

// TestProse looks for dialect in the comments and string literals of Go files, and in the whole
// text of the other kinds.
func TestProse(t *testing.T) {
	kinds := strings.Fields(".go .lua .sql .md .yaml .html .sh")
	for _, path := range tree(t) {
		if !slices.Contains(kinds, filepath.Ext(path)) || path == "prose_test.go" {
			continue
		}
		prose := []string{read(t, path)}
		if filepath.Ext(path) == ".go" {
			comments, literals, _ := split(prose[0])
			prose = []string{comments, literals}
		}
		for _, text := range prose {
			text = commentMark.ReplaceAllStringFunc(text, blank)
			for _, at := range dialect.FindAllStringIndex(text, -1) {
				line := 1 + strings.Count(text[:at[0]], "\n")
				t.Errorf("%s:%d: write the sentence without %q", path, line, text[at[0]:at[1]])
			}
		}
	}
}

// commentMark matches the mark of a comment line, which would stand between the words of a
// sentence.
var commentMark = regexp.MustCompile(`(?m)^[ \t]*(//|--|#|>)`)
