package catalog

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// benchPage is a page of 50 videos with descriptions of about 1.5 kB, whose words differ from page
// to page.
func benchPage(page int) []Video {
	list := make([]Video, 50)
	for i := range list {
		var text strings.Builder
		for n := range 220 {
			fmt.Fprintf(&text, "w%x ", (page*7919+i*104729+n*n*31)%20000)
		}
		list[i] = video(fmt.Sprintf("p%d-%d", page, i))
		list[i].Description = text.String()
	}
	return list
}

func BenchmarkStorePageOfNewVideos(b *testing.B) {
	c := open(b)
	page := 0
	for b.Loop() {
		b.StopTimer()
		list := benchPage(page)
		page++
		b.StartTimer()
		storeOnly(b, c, list, nine)
	}
}

func BenchmarkStorePageOfNewCounters(b *testing.B) {
	c := open(b)
	list := benchPage(0)
	at := nine
	for b.Loop() {
		at = at.Add(time.Hour)
		for i := range list {
			list[i].Views = number(at.Unix())
		}
		storeOnly(b, c, list, at)
	}
}

func BenchmarkStorePageOfRealVideos(b *testing.B) {
	var pages [][]Video
	realCharts(b, func(_ string, days [][]Video) {
		for _, page := range pagesOf(days[0], nine) {
			pages = append(pages, page.Videos)
		}
	})
	if len(pages) == 0 {
		return
	}
	c := open(b)
	n := 0
	for b.Loop() {
		b.StopTimer()
		list := append([]Video{}, pages[n%len(pages)]...)
		for i := range list {
			list[i].ID += fmt.Sprint(n / len(pages)) // new again in each round
		}
		n++
		b.StartTimer()
		storeOnly(b, c, list, nine)
	}
}

// storeOnly stores a page as a chart of its own, beginning included.
func storeOnly(b *testing.B, c *Catalog, list []Video, at time.Time) {
	if _, _, err := c.Begin(b.Context(), us, "run",
		Page{Videos: list, FetchedAt: at, Last: true}); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkSearch(b *testing.B) {
	c := open(b)
	for page := range 100 {
		storeOnly(b, c, benchPage(page), nine)
	}
	for b.Loop() {
		if _, err := c.Search(b.Context(), "w1f title", 20); err != nil {
			b.Fatal(err)
		}
	}
}
