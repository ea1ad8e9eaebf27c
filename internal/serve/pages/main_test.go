package pages

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/standin"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// station is a server of pages over a real catalogue.
type station struct {
	testing.TB
	pages *Pages
	url   string
	mux   *http.ServeMux
}

// routes registers the pages again: there are more of them with budgets.
func (s *station) routes() {
	s.mux = http.NewServeMux()
	s.pages.Routes(s.mux)
}

func newStation(t testing.TB) *station {
	t.Helper()
	c, err := catalog.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "catalog.db"))
	must(t, err)
	done := make(chan struct{})
	s := &station{TB: t, pages: &Pages{Catalog: c, Regions: []string{"US", "GB", "DE", "FR", "IN",
		"BR", "AU", "CA"}, Log: slog.New(slog.DiscardHandler), Done: done}}
	s.routes()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mux.ServeHTTP(w, r)
	}))
	s.url = web.URL
	t.Cleanup(func() {
		close(done)
		web.Close()
		must(t, c.Close())
	})
	return s
}

// store stores a complete chart in pages of 50.
func (s *station) store(region, run string, at time.Time, videos ...catalog.Video) catalog.ChartID {
	s.Helper()
	key := catalog.ChartKey{Region: region}
	pages := slices.Collect(slices.Chunk(videos, 50))
	if pages == nil {
		pages = [][]catalog.Video{nil}
	}
	var id catalog.ChartID
	for i, videos := range pages {
		page := catalog.Page{Token: token(i), Next: token(i + 1), Videos: videos,
			FetchedAt: at.Add(time.Duration(i-len(pages)+1) * time.Second)}
		if i == len(pages)-1 {
			page.Next, page.Last = "", true
		}
		var err error
		if i == 0 {
			id, _, err = s.pages.Catalog.Begin(s.Context(), key, run, 0, page)
		} else {
			_, err = s.pages.Catalog.StorePage(s.Context(), id, page)
		}
		must(s, err)
	}
	return id
}

func token(page int) string {
	if page == 0 {
		return ""
	}
	return "page" + string(rune('0'+page))
}

// fill stores the charts of the regions, a day of the source every three hours, the last one now.
func (s *station) fill(source *standin.Charts, now time.Time) {
	s.Helper()
	regions := source.Regions(source.Days() - 1)
	s.pages.Regions = slices.DeleteFunc(s.pages.Regions, func(region string) bool {
		return !slices.Contains(regions, region)
	})
	for day := range source.Days() {
		at := now.Add(-time.Duration(source.Days()-1-day) * 3 * time.Hour)
		for i, region := range s.pages.Regions {
			s.store(region, at.Format("run-0215"), at.Add(-time.Duration(i)*5*time.Minute),
				videosOf(s, source.Chart(region, day))...)
		}
	}
}

func videosOf(t testing.TB, list []*standin.Video) (all []catalog.Video) {
	t.Helper()
	for _, v := range list {
		published, err := time.Parse(time.RFC3339, v.PublishedAt)
		must(t, err)
		all = append(all, catalog.Video{ID: v.ID, Title: v.Title, ChannelID: v.ChannelID,
			ChannelTitle: v.ChannelTitle, Category: v.CategoryID, Description: v.Description,
			Duration: v.Duration, Tags: v.Tags, PublishedAt: published, Views: v.ViewCount,
			Likes: v.LikeCount, Comments: v.CommentCount})
	}
	return all
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (s *station) get(path string) reply {
	s.Helper()
	response, err := http.Get(s.url + path)
	must(s, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(s, err)
	return reply{response.StatusCode, response.Header, string(body)}
}

var (
	tag    = regexp.MustCompile(`<[^>]*>`)
	blanks = regexp.MustCompile(`\s+`)
)

// text is what a page says, without its tags.
func (r reply) text() string {
	_, main, _ := strings.Cut(r.body, "<main")
	main, _, _ = strings.Cut(main, "</main>")
	return strings.TrimSpace(blanks.ReplaceAllString(tag.ReplaceAllString("<main"+main, " "), " "))
}

func (s *station) says(path string, status int, wanted ...string) reply {
	s.Helper()
	r := s.get(path)
	if r.status != status {
		s.Errorf("%s: status %d, want %d", path, r.status, status)
	}
	for _, text := range wanted {
		if !strings.Contains(r.text(), text) {
			s.Errorf("%s does not say %q:\n%s", path, text, r.text())
		}
	}
	return r
}
