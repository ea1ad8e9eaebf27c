package ingest_test

import (
	"strings"
	"testing"
)

// TestTooLargePage: an oversized page is charged but neither stored nor requested again, and the
// sweep goes on with the other regions.
func TestTooLargePage(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(string) string
		want  string
	}{
		"title": {func(body string) string {
			return strings.Replace(body, `"title":"`, `"title":"`+strings.Repeat("a", 1<<20), 1)
		}, "title is 10486"},
		"body": {func(body string) string { return body + strings.Repeat(" ", 17<<20) },
			"it is longer than 16777216 bytes"},
		"items": {func(body string) string {
			return strings.Replace(body, `"items":[`, `"items":[{},`, 1)
		}, "items is a list of 51, 50 at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := plenty(t)
			answers := 0
			s.alter = func(body string) string {
				if answers++; answers == 1 {
					return c.alter(body)
				}
				return body
			}
			sum := s.run(t, "US,GB", 1, "partial US:failed:0/0:1 GB:1/50:1", "US1 GB1")
			if err := sum.Regions[0].Err(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.300v, want %s", err, c.want)
			}
			if ids := s.current(t, "US"); ids != nil {
				t.Errorf("%d videos were stored", len(ids))
			}
			s.balanced(t)
		})
	}
}
