package quotabudget_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
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
	for _, path := range proseFiles(t) {
		text := prose(path, read(t, path))
		for _, at := range dialect.FindAllStringIndex(text, -1) {
			line := 1 + strings.Count(text[:at[0]], "\n")
			t.Errorf("%s:%d: write the sentence without %q", path, line, text[at[0]:at[1]])
		}
	}
}

// proseFiles returns the files to read, this one excepted.
func proseFiles(t *testing.T) (paths []string) {
	t.Helper()
	kinds := strings.Fields(".go .lua .sql .md .yaml .html .sh")
	skipped := strings.Fields(".git bin state node_modules rapid fuzz")
	must(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skipped, entry.Name()):
			return filepath.SkipDir
		case slices.Contains(kinds, filepath.Ext(path)) && path != "prose_test.go":
			paths = append(paths, path)
		}
		return nil
	}))
	return paths
}

// commentMark matches the marks that would separate the words of a sentence on two lines.
var commentMark = regexp.MustCompile(`(?m)^[ \t]*(//|--|#|>)`)

// prose returns the text with everything else replaced by blanks, on the same lines.
func prose(path, text string) string {
	if filepath.Ext(path) == ".go" {
		text = goProse(text)
	}
	return commentMark.ReplaceAllStringFunc(text, blank)
}

// goProse keeps the comments and string literals of Go code.
func goProse(code string) string {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(code))
	s.Init(file, []byte(code), nil, scanner.ScanComments)
	var out strings.Builder
	for end := 0; ; {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return out.String()
		}
		if kind == token.COMMENT || kind == token.STRING {
			begin := file.Offset(pos)
			out.WriteString(blank(code[end:begin]) + literal)
			end = begin + len(literal)
		}
	}
}

// blank returns text with all but its line breaks replaced by blanks.
func blank(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return ' '
	}, text)
}
