package serve

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"quotabudget/internal/catalog"
)

// vocabulary has words as often as a language has: the n-th one of 20,000 a fraction 1/n.
type vocabulary struct {
	*rand.Zipf
}

func newVocabulary() vocabulary {
	return vocabulary{rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 5, 20_000)}
}

func (v vocabulary) word() string { return fmt.Sprintf("w%dx", v.Uint64()) }

func (v vocabulary) text(words int) string {
	var all []string
	for range words {
		all = append(all, v.word())
	}
	return strings.Join(all, " ")
}

// crowd is a catalogue of so many videos, in charts of 200, and their titles.
func crowd(b *testing.B, videos int) (c *catalog.Catalog, titles []string) {
	c, err := catalog.Open(b.Context(), "sqlite://"+filepath.Join(b.TempDir(), "catalog.db"))
	must(b, err)
	b.Cleanup(func() { must(b, c.Close()) })
	words, at := newVocabulary(), time.Now().Add(-time.Hour)
	for first := 0; first < videos; first += 200 {
		page := catalog.Page{FetchedAt: at, Last: true}
		for i := range 200 {
			n := int64(first + i)
			titles = append(titles, words.text(8))
			page.Videos = append(page.Videos, catalog.Video{
				ID: fmt.Sprintf("video-%d", n), Title: titles[n], ChannelTitle: words.text(2),
				ChannelID: fmt.Sprintf("channel-%d", n/7), Tags: strings.Fields(words.text(8)),
				Description: words.text(80), Views: &n, Likes: &n, Comments: &n, Category: "10",
			})
		}
		_, _, err := c.Begin(b.Context(), catalog.ChartKey{Region: "US"}, "run", 0, page)
		must(b, err)
		at = at.Add(time.Second)
	}
	return c, titles
}

// served is the address of a server over the catalogue.
func served(b *testing.B, c *catalog.Catalog, change func(*Server)) string {
	server := &Server{Catalog: c, Regions: []string{"US"}, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(server)
	}
	handler, err := server.Handler()
	must(b, err)
	web := httptest.NewServer(handler)
	b.Cleanup(web.Close)
	return web.URL
}

// clients are sixteen that read.
type clients struct {
	rate     vegeta.Pacer // vegeta.Rate{}: as fast as they can
	duration time.Duration
	next     func() string
	unpack   bool // the answers, as most clients do; that is not the server's work
}

func (l clients) attack(ctx context.Context, b *testing.B) *vegeta.Metrics {
	target := func(t *vegeta.Target) error {
		t.Method, t.URL = http.MethodGet, l.next()
		if !l.unpack {
			t.Header = http.Header{"Accept-Encoding": {"gzip"}}
		}
		return nil
	}
	attacker := vegeta.NewAttacker(vegeta.Workers(16), vegeta.MaxWorkers(16),
		vegeta.MaxBody(0), vegeta.Connections(16), vegeta.Timeout(10*time.Second))
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	metrics := new(vegeta.Metrics)
	for result := range attacker.Attack(target, l.rate, l.duration, b.Name()) {
		metrics.Add(result)
	}
	metrics.Close()
	if metrics.Success < 1 {
		b.Errorf("%v: %v", metrics.StatusCodes, metrics.Errors)
	}
	return metrics
}

// figures reports how many requests a second were answered and how long the slowest hundredth took.
func figures(b *testing.B, metrics *vegeta.Metrics) {
	b.ReportMetric(metrics.Throughput, "answers/s")
	b.ReportMetric(float64(metrics.Latencies.P50)/1e6, "p50-ms")
	b.ReportMetric(float64(metrics.Latencies.P99)/1e6, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSearch: fifty searches a second in 200,000 videos, none of them twice in a second. Half
// of them are for two words of some title, a fifth for one of the thirty most common words and
// another word, a fifth for a word of a title and the beginning of another, a tenth for a beginning
// alone.
func BenchmarkSearch(b *testing.B) {
	c, titles := crowd(b, 200_000)
	words, random := newVocabulary(), rand.New(rand.NewPCG(3, 4))
	search := func() string {
		title := strings.Fields(titles[random.IntN(len(titles))])
		one, other := title[random.IntN(4)], title[4+random.IntN(4)]
		switch n := random.IntN(10); {
		case n < 5:
			return one + " " + other
		case n < 7:
			return fmt.Sprintf("w%dx %s", random.IntN(30), words.word())
		case n < 9:
			return one + " " + other[:2+random.IntN(len(other)-2)]
		}
		return other[:2+random.IntN(len(other)-2)]
	}
	base := served(b, c, nil)
	searchers := clients{rate: vegeta.Rate{Freq: 50, Per: time.Second}, duration: 3 * time.Second,
		next: func() string { return base + "/v1/search?q=" + url.QueryEscape(search()) }}
	searchers.attack(b.Context(), b) // the disk has settled, and the file is in memory
	searchers.duration = 10 * time.Second
	before := processorTime(b)
	metrics := searchers.attack(b.Context(), b)
	used := processorTime(b) - before
	b.ReportMetric(used.Seconds()*1e3/float64(metrics.Requests), "cpu-ms/search")
	figures(b, metrics)
}
