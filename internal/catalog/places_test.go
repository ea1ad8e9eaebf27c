package catalog

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestPlaces: a repeated video leaves a gap, on whatever page; a chart that is not there has no places.
func TestPlaces(t *testing.T) {
	ctx := context.Background()
	c, err := Open(ctx, "sqlite://"+filepath.Join(t.TempDir(), "catalog.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	id, err := c.Begin(ctx, ChartKey{Region: "US"}, "run", now)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []Page{
		{Next: "two", Videos: []Video{{ID: "a"}, {ID: "b"}}, FetchedAt: now},
		{Token: "two", Videos: []Video{{ID: "a"}, {ID: "c"}}, FetchedAt: now, Last: true},
	} {
		if _, err := c.StorePage(ctx, id, page); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := c.Places(ctx, id); err != nil || !slices.Equal(got, []string{"a", "b", "", "c"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := c.Places(ctx, id+1); err != nil || len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
}
