package costs_test

import (
	"io/fs"
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
