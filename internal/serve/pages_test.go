package serve

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/catalog"
)

func number64(n int64) *int64 { return &n }

func named(id, title string, views int64) catalog.Video {
	return catalog.Video{ID: id, Title: title, ChannelID: "UC" + id, ChannelTitle: "Channel " + id,
		Views: &views}
}

// A chart shows the moves since the one before, and links to earlier charts.
func TestChartPage(t *testing.T) {
	s := newEnv(t, nil)
	a, b := named("a", "First", 10), named("b", "Second", 20)
	c, d := named("c", "Third", 1_234_567), named("d", "Fourth", 40)
	s.store("US", "run1", nine, a, b, c)
	s.shows("/charts/US", 200, "videos 3", "1 First Channel a 10", "2 Second",
		"3 Third Channel c 1.23M")
	s.store("US", "run2", nine.Add(3*time.Hour), c, a, d)
	s.shows("/charts/US", 200, "new 1 left 1", "compared with", "1 ▲ up 2 Third",
		"2 ▼ down 1 First", "3 new Fourth", "Left since the previous chart 2 Second")
	s.store("US", "run3", nine.Add(6*time.Hour), c, a, d)
	s.shows("/charts/us", 200, "1 = same place Third", "Earlier charts")
	s.shows("/charts/US?at=2026-07-01T09:00", 200, "3 Third", "the newest")
	s.shows("/charts/US?at="+iso(nine.Add(3*time.Hour)), 200, "1 ▲ up 2 Third")
	s.shows("/charts/US?at=2026-07-01", 404, "no complete chart of US from before 1 Jul 2026")
	s.shows("/charts/US?at=yesterday", 400, "write a time in UTC")
	s.shows("/charts/GB", 404, "no complete chart of GB yet")
	s.shows("/charts/UK", 404, "did you mean GB?")
}

// A chart without videos, and the chart after it, have pages, too.
func TestEmptyChart(t *testing.T) {
	s := newEnv(t, nil)
	s.store("US", "run1", nine)
	s.shows("/charts/US", 200, "This chart is empty.")
	s.store("US", "run2", nine.Add(time.Hour), named("a", "First", 1))
	s.shows("/charts/US", 200, "1 new First")
	s.store("US", "run3", nine.Add(2*time.Hour))
	s.shows("/charts/US", 200, "This chart is empty.", "1 First")
}

func TestRegionsPage(t *testing.T) {
	s := newEnv(t, nil)
	s.store("US", "run1", nine, named("a", "First", 1), named("b", "Second", 1))
	key := "DE"
	_, _, err := s.server.Catalog.Begin(t.Context(), key, "run1", 0, catalog.Page{Next: "more",
		FetchedAt: nine, Videos: []catalog.Video{named("c", "Half", 1)}})
	must(t, err)
	fr := "FR"
	must(t, s.server.Catalog.MarkUnavailable(t.Context(), fr, nine, false))
	s.shows("/charts", 200, "First Second", "GB not fetched yet", "DE incomplete", "FR no chart")
}

// TestVideoPage: a video's page has its counters as a plot and a table, and its earlier titles.
func TestVideoPage(t *testing.T) {
	s := newEnv(t, nil)
	v := named("-a_1", "First name", 1000)
	v.Duration, v.Likes, v.Tags = "PT1H2M3S", number64(5), []string{"lofi", ""}
	v.Description = "One\n\nTwo"
	s.store("US", "run1", nine, v)
	page := s.shows("/videos/-a_1", 200, "First name", "length 1:02:03", "1k Views", "5 Likes",
		"– Comments the upstream does not say", "has not changed since the video was first seen",
		"Tags lofi", "One Two")
	v.Title, v.Views = "Second name", number64(2500)
	s.store("US", "run2", nine.Add(3*time.Hour), v)
	page = s.shows("/videos/-a_1", 200, "2.5k Views", "from 1,000 on 1 Jul 2026 09:00:00 UTC to "+
		"2,500 on 1 Jul 2026 12:00:00 UTC", "Names", "First name", "Second name")
	if n := strings.Count(page.body, `role="img" aria-labelledby="plot-`); n != 2 {
		t.Errorf("%d plots, want 2", n)
	}
	s.shows("/videos/nothing", 404, "no video with that id")
}

func TestSearchPage(t *testing.T) {
	s := newEnv(t, nil)
	var videos []catalog.Video
	for i := range 60 {
		videos = append(videos, named("v"+string(rune('A'+i)), "Rainy lofi beats", int64(i)))
	}
	s.store("US", "run1", nine, videos...)
	s.shows("/search", 200, "Enter words")
	first := s.shows("/search?q=lofi+rain", 200, "Videos with lofi rain", "Next")
	if !strings.Contains(first.body, `href="/search?page=2&amp;q=lofi&#43;rain"`) {
		t.Errorf("no link to the next page: %s", first.body)
	}
	s.shows("/search?q=lofi+rain&page=2", 200, ", page 2", "Previous", "Next")
	last := s.shows("/search?q=lofi+rain&page=3", 200, "Previous")
	if n := strings.Count(last.body, "<li>\n  <p"); n != 10 {
		t.Errorf("%d videos on the last page, want 10", n)
	}
	s.shows("/search?q=lofi&page=4", 200, "No more videos")
	s.shows("/search?q=nobody", 200, "No video in the catalogue has all of these words: nobody")
	s.shows("/search?q=a&page=0", 400, "from 1 to 20")
	s.shows("/search?q="+strings.Repeat("a", 201), 400, "at most 200 bytes")
	s.shows("/search?q="+url.QueryEscape(`"><script>alert(1)</script>`), 200, "&lt;script&gt;")
}

// inline are the attributes that the content security policy forbids.
var inline = regexp.MustCompile(`\s(?:style|on\w+)=`)

// Titles from the upstream are shown as text, whatever they contain.
func TestHostileTitles(t *testing.T) {
	s := newEnv(t, nil)
	hostile := []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`,
		"\u202egnp.exe\u2066\u2069\u2069", "\x00\x1b[31m\u009b",
		"</title><script>alert(2)</script>",
		"{{.}} ${alert(3)}", " \r\n\t "}
	var videos []catalog.Video
	for i, title := range hostile {
		v := named("id"+string(rune('a'+i)), title, 1)
		v.ChannelTitle, v.Description, v.Tags = title, title, []string{title}
		videos = append(videos, v)
	}
	videos = append(videos, named(`../"><script>`, "odd id", 1))
	s.store("US", "run1", nine, videos...)
	s.store("US", "run2", nine.Add(time.Hour), videos[1:]...)
	paths := []string{"/charts", "/charts/US", "/search?q=alert", "/search?q=odd",
		"/videos/" + url.PathEscape(`../"><script>`)}
	for _, v := range videos[:len(hostile)] {
		paths = append(paths, "/videos/"+v.ID)
	}
	for _, path := range paths {
		page := s.shows(path, 200)
		for _, bad := range []string{"<script>", "<img", "onerror=alert(1)>", "\u202e", "\u2066",
			"\u2069", "\x00", "\x1b", "\u009b"} {
			if strings.Contains(page.body, bad) {
				t.Errorf("%s has %q", path, bad)
			}
		}
		for _, element := range tag.FindAllString(page.body, -1) {
			if inline.MatchString(element) {
				t.Errorf("%s: %s", path, element)
			}
		}
	}
	s.shows("/videos/idg", 200, "(no title)")
}

// A page stays the same until its data changes, so that its ETag saves a transfer.
func TestSamePage(t *testing.T) {
	s, b := newBudget(t, 10_000)
	now := time.Now()
	s.store("US", "run1", now.Add(-time.Hour), named("a", "First", 1))
	b.charge(now.Add(-time.Hour), "youtube.videos.list", 4, "job=trending region=US")
	for _, path := range []string{"/", "/charts", "/charts/US", "/videos/a", "/search?q=a", "/log",
		"/plan"} {
		same := func() bool {
			begin := time.Now().Truncate(time.Minute)
			first := s.get(path)
			return first.body == s.get(path).body || !time.Now().Truncate(time.Minute).Equal(begin)
		}
		once, again := same(), same() // the ledger's clock may have gone on by a tenth of a pixel
		if !once && !again {
			t.Errorf("%s differs from one request to the next", path)
		}
	}
}

func TestNoSuchPage(t *testing.T) {
	s := newEnv(t, nil)
	s.shows("/nothing", 404, "Not Found no such page")
	if r := s.get("/static/style.css"); r.status != 200 || r.header.Get("Content-Type") !=
		"text/css; charset=utf-8" {
		t.Errorf("style sheet: %d %s", r.status, r.header)
	}
	if r := s.get("/static/..%2fpages.go"); r.status != 404 {
		t.Errorf("what is not a static file: %d", r.status)
	}
}
