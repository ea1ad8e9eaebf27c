package costs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quotabudget"
	"quotabudget/internal/costs"
)

// TestShippedListsFollowTheSchema: the programs do not check the shipped lists.
func TestShippedListsFollowTheSchema(t *testing.T) {
	data, err := fs.ReadFile(quotabudget.Costs(), "costs.yaml")
	must(t, err)
	if _, err := costs.ParseList("costs.yaml", data, quotabudget.Costs()); err != nil {
		t.Error(err)
	}
}

// TestNoAPIIsSpecial: lists describe APIs, Go code does not.
func TestNoAPIIsSpecial(t *testing.T) {
	own, err := filepath.Glob("*.go")
	must(t, err)
	formulas, err := filepath.Glob("formula/*.go")
	must(t, err)
	for _, file := range append(own, formulas...) {
		data, err := os.ReadFile(file)
		must(t, err)
		for _, name := range strings.Fields("youtube anthropic openai shopify") {
			if !strings.HasSuffix(file, "_test.go") &&
				strings.Contains(strings.ToLower(string(data)), name) {
				t.Errorf("%s mentions %s", file, name)
			}
		}
	}
}
