package costs_test

import (
	"fmt"
	"strings"
	"testing"

	"quotabudget/internal/costs"
)

// priced is a price list with so many buckets, and methods that take units from the last of them.
func priced(buckets, methods int, method string) string {
	var b strings.Builder
	b.WriteString(small[:strings.Index(small, "buckets:")] + "buckets:\n")
	for i := range buckets {
		fmt.Fprintf(&b, "  b%d: {metric: m%d, daily: 1, timezone: UTC, source: table}\n", i, i)
	}
	b.WriteString(small[strings.Index(small, "sources:"):strings.Index(small, "methods:")] +
		"methods:\n")
	for i := range methods {
		fmt.Fprintf(&b, "  s.m%d: {route: GET /m%d, cost: {%s: 1}, source: table}\n", i, i,
			fmt.Sprintf(method, buckets-1))
	}
	return b.String()
}

// TestLargeLists: a price list as large as a file may be is read about as fast as it is long.
func TestLargeLists(t *testing.T) {
	t.Parallel()
	table, err := costs.Parse([]byte(priced(8000, 8000, "b%d")))
	if err != nil || len(table.Methods()) != 8000 || len(table.Buckets()) != 1 {
		t.Error(err)
	}
	_, err = costs.Parse([]byte(priced(8000, 8000, "nob%d")))
	if n := strings.Count(fmt.Sprint(err), "\n"); n != 100 ||
		!strings.HasSuffix(err.Error(), "only the first 100 problems are listed") {
		t.Errorf("%d problems: %.500v", n, err)
	}
	uploads := strings.Replace(small, "[/upload]", "["+strings.Repeat("/upload, ", 17)+"]", 1)
	if _, err = costs.Parse([]byte(uploads)); err == nil ||
		!strings.Contains(err.Error(), "uploads: must have at most 16 items") {
		t.Error(err)
	}
}
