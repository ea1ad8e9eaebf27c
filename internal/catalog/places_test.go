package catalog

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestPlaces: a repeated video leaves a gap, on whatever page; a chart that is not there has no
// places.
func TestPlaces(t *testing.T) {
	ctx := context.Background()
	c, err := Open(ctx, "sqlite://"+filepath.Join(t.TempDir(), "catalog.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	id, _, err := c.Begin(ctx, ChartKey{Region: "US"}, "run",
		Page{Next: "two", Videos: []Video{{ID: "a"}, {ID: "b"}}, FetchedAt: now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.StorePage(ctx, id, Page{Token: "two", Videos: []Video{{ID: "a"}, {ID: "c"}},
		FetchedAt: now, Last: true}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Places(ctx, id); err != nil ||
		!slices.Equal(got, []string{"a", "b", "", "c"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := c.Places(ctx, id+1); err != nil || len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
}
