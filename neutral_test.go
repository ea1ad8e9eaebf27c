package quotabudget_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNoUpstreamIsSpecial: what meters, prices and forwards requests knows upstreams by their price
// lists alone. It imports nothing that is about one of them, not even through another package, and
// names none in its code.
func TestNoUpstreamIsSpecial(t *testing.T) {
	neutral := strings.Fields("meter costs costs/formula costs/feed proxy upstream")
	names := []string{"youtube", "openai", "anthropic", "github", "shopify"}
	imports := map[string][]string{}
	all := packages(t)
	for _, p := range all {
		imports[p.path()] = p.Imports
	}
	for _, p := range all {
		if !slices.Contains(neutral, p.path()) {
			continue
		}
		for _, imported := range reached(imports, p.path()) {
			if strings.HasPrefix(imported, "youtube") || strings.HasPrefix(imported, "standin") {
				t.Errorf("%s imports %s, which is about one upstream", p.path(), imported)
			}
		}
		for _, name := range p.GoFiles {
			for _, word := range literals(t, filepath.Join(p.Dir, name)) {
				matches := func(name string) bool {
					return strings.Contains(strings.ToLower(word), name)
				}
				if slices.ContainsFunc(names, matches) && !strings.HasPrefix(word, `"quotabudget`) {
					t.Errorf("%s/%s names an upstream: %s", p.path(), name, word)
				}
			}
		}
	}
}

// reached are the packages of the module that one imports, and those that they import.
func reached(imports map[string][]string, from string) (all []string) {
	for open := []string{from}; len(open) > 0; open = open[1:] {
		for _, imported := range imports[open[0]] {
			if to := within(imported); to != "" && !slices.Contains(all, to) {
				all, open = append(all, to), append(open, to)
			}
		}
	}
	return all
}

// literals are the names and constants of a file, without its comments and its imports.
func literals(t *testing.T, path string) (words []string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	must(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Ident:
			words = append(words, n.Name)
		case *ast.BasicLit:
			words = append(words, n.Value)
		}
		return true
	})
	return words
}
