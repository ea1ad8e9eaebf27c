package catalog

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// noOther makes Begin begin a chart even if its run has one already.
const noOther = ChartID(math.MaxInt64)

// crowd returns a catalogue with a complete chart of n videos, oldest first.
func crowd(t *testing.T, n int, describe func(i int) Video) *Catalog {
	t.Helper()
	c := open(t)
	list := make([]Video, n)
	for i := range list {
		list[i] = describe(i)
		list[i].ID = fmt.Sprintf("v%d", i)
	}
	chart(t, c, us, nine, list...)
	return c
}

// ids returns the IDs that a search finds, best first.
func ids(t *testing.T, c *Catalog, query string, skip, limit int) []string {
	t.Helper()
	videos, err := c.Search(t.Context(), query, skip, limit)
	must(t, err)
	out := make([]string, len(videos))
	for i, v := range videos {
		out[i] = v.ID
	}
	return out
}

func wantFound(t *testing.T, got []string, want string) {
	t.Helper()
	if strings.Join(got, " ") != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

// TestSearchForACommonWord: a search ranks the newest five hundred matches, and without a limit
// all of them.
func TestSearchForACommonWord(t *testing.T) {
	t.Parallel()
	c := crowd(t, 1000, func(i int) Video {
		switch i {
		case 100, 600, 700:
			return Video{Title: "Music", Description: "title"}
		case 800:
			return Video{ChannelTitle: "Music", Description: "title"}
		case 900:
			return Video{Tags: []string{"music"}}
		}
		return Video{Description: "Some músic"}
	})
	wantFound(t, ids(t, c, "MUSIC", 0, 6), "v700 v600 v900 v800 v999 v998")
	wantFound(t, ids(t, c, "music", 498, 5), "v501 v500")
	got := ids(t, c, "music", 0, 0)
	if len(got) != 1000 || got[2] != "v100" {
		t.Errorf("%d found, then %s", len(got), got[:4])
	}
	if got := ids(t, c, "music", 0, 700); len(got) != 700 || got[699] != "v300" {
		t.Errorf("%d found", len(got))
	}
	wantFound(t, ids(t, c, "music title", 0, 5), "v800 v700 v600 v100")
}

// TestSearchPages: the pages of a search list each video once, whole words before prefixes.
func TestSearchPages(t *testing.T) {
	t.Parallel()
	words := []string{"mus", "music", "museum", "other"}
	c := crowd(t, 200, func(i int) Video {
		v := Video{Title: "lofi", Description: words[i%4]}
		if i%3 == 0 {
			v.Title, v.Description = v.Description, v.Title
		}
		return v
	})
	every := ids(t, c, "lofi mus", 0, 0)
	if len(every) != 150 {
		t.Fatalf("found %d", len(every))
	}
	for i, id := range every {
		n := 0
		fmt.Sscanf(id, "v%d", &n)
		if whole := n%4 == 0; whole != (i < 50) {
			t.Errorf("%s is at place %d", id, i)
		}
	}
	for _, size := range []int{7, 50, 149, 150, 151} {
		var paged []string
		for {
			page := ids(t, c, "lofi mus", len(paged), size)
			if paged = append(paged, page...); len(page) < size {
				break
			}
		}
		if !slices.Equal(paged, every) {
			t.Errorf("pages of %d: %s, want %s", size, paged, every)
		}
	}
	wantFound(t, ids(t, c, "lofi mus", 1000, 10), "")
}
