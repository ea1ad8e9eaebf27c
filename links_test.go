package quotabudget_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names by which a link can reach the headings of a page, as GitHub makes them.
func anchors(text string) map[string]bool {
	names := make(map[string]bool)
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		name := noSlug.ReplaceAllString(strings.ToLower(h[1]), "")
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	return names
}

// Every link leads to a file that exists, and to a heading that it has.
func TestDocumentsLinkToWhatExists(t *testing.T) {
	for _, path := range documents(t) {
		prose := fenced.ReplaceAllString(read(t, path), "")
		for _, l := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(l[1], "#")
			target := filepath.Join(filepath.Dir(path), file)
			if file == "" {
				target = path
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, l[1], err)
				continue
			}
			if anchor != "" && !anchors(read(t, target))[anchor] {
				t.Errorf("%s links to %s: %s has no such heading", path, l[1], target)
			}
		}
	}
}

// The README links to the manual's index, and that to every page of the manual.
func TestReadersFindEveryPage(t *testing.T) {
	readme, index := read(t, "README.md"), read(t, "docs/README.md")
	for _, path := range documents(t) {
		page, inManual := strings.CutPrefix(path, "docs/")
		switch {
		case path == "README.md":
		case inManual && page != "README.md":
			if !strings.Contains(index, "]("+page) {
				t.Errorf("docs/README.md has no link to %s", path)
			}
		case !strings.Contains(readme, "]("+path):
			t.Errorf("README.md has no link to %s", path)
		}
	}
}

// Prose is wrapped at 100 columns. Headings, tables, code and pictures are as wide as they are.
func TestDocumentsAreWrapped(t *testing.T) {
	for _, path := range documents(t) {
		code := false
		for i, line := range strings.Split(read(t, path), "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			wide := code || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") ||
				strings.HasPrefix(line, "![") || strings.HasPrefix(line, "#")
			if n := utf8.RuneCountInString(line); !wide && n > 100 {
				t.Errorf("%s:%d: %d columns", path, i+1, n)
			}
		}
	}
}

// The README's figures are those of the tables.
func TestReadmeFigures(t *testing.T) {
	_, figures, _ := strings.Cut(read(t, "README.md"), "\n## Benchmarks\n")
	figures, _, _ = strings.Cut(figures, "\n## ")
	tables := read(t, "docs/benchmarks.md")
	numbers := regexp.MustCompile(`\d[\d,.]*\d|\d`).FindAllString(figures, -1)
	if len(numbers) < 5 {
		t.Errorf("only %d figures", len(numbers))
	}
	for _, n := range numbers {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(n) + `\b`).MatchString(tables) {
			t.Errorf("README.md: docs/benchmarks.md has no figure %s", n)
		}
	}
}

// Every package has a row in ARCHITECTURE.md.
func TestEveryPackageIsDescribed(t *testing.T) {
	rows := read(t, "ARCHITECTURE.md")
	for name := range layers {
		if name != "." && name != "deploy" && !strings.Contains(rows, "`"+name+"`") &&
			!strings.Contains(rows, "`internal/"+name+"`") {
			t.Errorf("ARCHITECTURE.md does not describe %s", name)
		}
	}
}
