package catalog

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	nine = time.Date(2026, 11, 21, 9, 0, 0, 123456000, time.UTC)
	us   = "US"
)

func open(t testing.TB) *Catalog {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "catalog.db"))
}

func openAt(t testing.TB, path string) *Catalog {
	t.Helper()
	c, err := Open(t.Context(), "sqlite://"+path)
	must(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func number(n int64) *int64 { return &n }

// video returns a made-up video. Different IDs have different texts.
func video(id string) Video {
	return Video{
		ID: id, Title: "Title of " + id, ChannelID: "UC" + id, ChannelTitle: "Channel of " + id,
		Category:    "10",
		Description: strings.Repeat("About "+id+". ", 20), Duration: "PT3M",
		Tags:        []string{"music", id},
		PublishedAt: nine.Add(-time.Hour), Views: number(100), Likes: number(10),
		Comments: number(1),
	}
}

func videos(ids ...string) []Video {
	all := make([]Video, len(ids))
	for i, id := range ids {
		all[i] = video(id)
	}
	return all
}

// begin begins a chart whose first page has only videos that are new in it.
func begin(t *testing.T, c *Catalog, region string, first Page) ChartID {
	t.Helper()
	id, added, err := c.Begin(t.Context(), region, "run1", noOther, first)
	must(t, err)
	ids := make(map[string]bool)
	for _, v := range first.Videos {
		ids[v.ID] = true
	}
	if added != len(ids) {
		t.Errorf("added %d, want %d", added, len(ids))
	}
	return id
}

func store(t *testing.T, c *Catalog, id ChartID, page Page) int {
	t.Helper()
	added, err := c.StorePage(t.Context(), id, page)
	must(t, err)
	return added
}

// chart stores a complete chart of one page.
func chart(t *testing.T, c *Catalog, region string, at time.Time, list ...Video) ChartID {
	t.Helper()
	return begin(t, c, region, Page{Videos: list, FetchedAt: at, Last: true})
}

// wantHeads compares the ranks and IDs of the current chart: "1:a 2:b".
func wantHeads(t *testing.T, c *Catalog, region string, want string) {
	t.Helper()
	var places []string
	_, ranked, err := c.Current(t.Context(), region, 0)
	for _, place := range ranked {
		places = append(places, fmt.Sprintf("%d:%s", place.Rank, place.ID))
	}
	if errors.Is(err, ErrNotFound) {
		places, err = []string{"none"}, nil
	}
	if got := strings.Join(places, " "); got != want || err != nil {
		t.Errorf("current chart of %s is %q, %v; want %q", region, got, err, want)
	}
}

// execute runs a statement on the catalogue's file.
func execute(t *testing.T, c *Catalog, statement string) {
	t.Helper()
	_, err := c.db.Write.Exec(statement)
	must(t, err)
}

// scalar returns the number that a query yields.
func scalar(t *testing.T, c *Catalog, query string) (n int) {
	t.Helper()
	must(t, c.db.Write.QueryRow(query).Scan(&n))
	return n
}

func page(id string) Page { return Page{Next: "2", Videos: videos(id), FetchedAt: nine} }

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
