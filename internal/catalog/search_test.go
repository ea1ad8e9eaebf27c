package catalog

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

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

// found returns the sorted IDs that a search finds.
func found(t *testing.T, c *Catalog, query string) string {
	t.Helper()
	return strings.Join(slices.Sorted(slices.Values(ids(t, c, query, 0, 0))), " ")
}

func TestSearchInAnyScript(t *testing.T) {
	c := open(t)
	chart(t, c, us, nine,
		Video{ID: "latin", Title: "Beyoncé – Crème BRÛLÉE", ChannelTitle: "Straße",
			Tags: []string{"rock'n'roll", "C++ tips"}},
		Video{ID: "nfd", Title: "Beyonce\u0301 live"},
		Video{ID: "ja", Title: "東京タワーの夜景🔥", Description: "サッカー日本代表"},
		Video{ID: "zh", Title: "北京欢迎你"},
		Video{ID: "ko", Title: "대한민국 축구 국가대표팀", ChannelTitle: "방탄소년단"},
		Video{ID: "th", Title: "กรุงเทพมหานคร"},
		Video{ID: "ru", Title: "ПРИВЕТ, мир!", Description: "Ёлка"},
		Video{ID: "el", Title: "Ελλάδα"},
		Video{ID: "hi", Title: "हिन्दी गाना"},
		Video{ID: "bare", Title: "ह थ"},
		Video{ID: "ar", Title: "مرحبا \u202eبالعالم\u202c"},
		Video{ID: "rare", Title: "\U00030edd\U00030edd麺"},
		Video{ID: "nul", Title: "before\x00after"},
	)
	for query, want := range map[string]string{
		"beyonce": "latin nfd", "BEYONCÉ": "latin nfd", "beyonce\u0301": "latin nfd",
		"brulee creme": "latin",
		"straße":       "latin", "rock'n'roll": "latin", "c++": "latin", "bey": "latin nfd",
		"live beyonce": "nfd", "eyonce": "",
		"東京": "ja", "タワー": "ja", "京": "ja zh", "東": "ja", "夜景": "ja", "日本 東京": "ja", "サッカー": "ja",
		"京東": "", "🔥": "ja", "夜景🔥": "ja",
		"欢迎": "zh", "北京 你": "zh", "축구": "ko", "한민": "ko", "방탄": "ko", "กรุง": "th", "เทพ": "th",
		"привет": "ru", "МИР": "ru", "елка": "ru", "ЕЛКА": "ru", "ελλαδα": "el", "हिन्दी": "hi",
		"गाना": "hi", "हाथ": "", "ह": "bare hi", "مرحبا": "ar", "بالعالم": "ar",
		"\U00030edd麺": "rare", "after": "nul", "before\x00after": "nul", "befor": "nul",
	} {
		if got := found(t, c, query); got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
}

func TestSearchTakesAnyQuery(t *testing.T) {
	c := open(t)
	chart(t, c, us, nine, videos("a", "b")...)
	for _, query := range []string{
		"", " ", "!", `"`, `""`, `"a`, `a"b`, "'", "*", "a*", "(", "a)", "AND", "a AND", "NOT b",
		"OR", "NEAR(a b)", "title:a", "{title}:a",
		"-a", "+", "^a", "\\", "%", "_", "\x00", "a\x00", "\xff\xfe", "\u202e", "\u0301", "👩‍👩‍👧",
		"title : a", "a;DROP TABLE videos", "'; --",
		strings.Repeat("very long ", 500), strings.Repeat("x", 100000),
	} {
		found(t, c, query)
	}
	if got := found(t, c, "title music"); got != "a b" {
		t.Errorf("found %q", got)
	}
	if got := found(t, c, "title OR nothing"); got != "" {
		t.Errorf("OR was taken for an operator: %q", got)
	}
}

func TestSearchLooksEverywhereAndRanksTitlesFirst(t *testing.T) {
	c := open(t)
	filler := strings.Repeat("and so on ", 30)
	chart(t, c, us, nine,
		Video{ID: "description", Description: "walrus " + filler},
		Video{ID: "tag", Tags: []string{"walrus"}, Description: filler},
		Video{ID: "channel", ChannelTitle: "walrus", Description: filler},
		Video{ID: "title", Title: "walrus", Description: filler},
	)
	got := ids(t, c, "walrus", 0, 0)
	if len(got) != 4 || got[0] != "title" || got[3] != "description" {
		t.Errorf("found %s", got)
	}
	if got := ids(t, c, "walrus", 0, 1); len(got) != 1 {
		t.Errorf("limit 1: %s", got)
	}
}

func TestSearchFollowsChanges(t *testing.T) {
	c := open(t)
	v := Video{ID: "a", Title: "walrus", Description: "tusk", Tags: []string{"sea"},
		ChannelTitle: "arctic"}
	for i, change := range []struct {
		change      func()
		gone, found string
	}{
		{func() {}, "penguin", "walrus"},
		{func() { v.Views = number(1) }, "penguin", "walrus"},
		{func() { v.Title = "penguin" }, "walrus", "penguin"},
		{func() { v.Description = "beak" }, "tusk", "beak"},
		{func() { v.Tags = []string{"ice"} }, "sea", "ice"},
		{func() { v.ChannelTitle = "antarctic" }, "arctic", "antarctic"},
	} {
		change.change()
		chart(t, c, us, nine.Add(time.Duration(i)*time.Hour), v)
		if found(t, c, change.gone) != "" || found(t, c, change.found) != "a" {
			t.Errorf("step %d: %q still finds, or %q does not", i, change.gone, change.found)
		}
	}
}

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
	for _, search := range []struct {
		query       string
		skip, limit int
		want        string
	}{
		{"MUSIC", 0, 6, "v700 v600 v900 v800 v999 v998"},
		{"music", 498, 5, "v501 v500"},
		{"music title", 0, 5, "v800 v700 v600 v100"},
		{"music", 2000, 5, ""},
	} {
		got := ids(t, c, search.query, search.skip, search.limit)
		if strings.Join(got, " ") != search.want {
			t.Errorf("%+v: found %s", search, got)
		}
	}
	got := ids(t, c, "music", 0, 0)
	if len(got) != 1000 || got[2] != "v100" {
		t.Errorf("%d found, then %s", len(got), got[:4])
	}
	if got := ids(t, c, "music", 0, 700); len(got) != 700 || got[699] != "v300" {
		t.Errorf("%d found", len(got))
	}
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
}
