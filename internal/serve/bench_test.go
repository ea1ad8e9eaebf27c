package serve

import (
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

// crowded is a server over a catalogue of so many videos, in charts of 200.
func crowded(b *testing.B, videos int) (*Server, string) {
	c, err := catalog.Open(b.Context(), "sqlite://"+filepath.Join(b.TempDir(), "catalog.db"))
	must(b, err)
	words, at := newVocabulary(), time.Now().Add(-time.Hour)
	for first := 0; first < videos; first += 200 {
		page := catalog.Page{FetchedAt: at, Last: true}
		for i := range 200 {
			n := int64(first + i)
			page.Videos = append(page.Videos, catalog.Video{
				ID: fmt.Sprintf("video-%d", n), Title: words.text(8), ChannelTitle: words.text(2),
				ChannelID: fmt.Sprintf("channel-%d", n/7), Tags: strings.Fields(words.text(8)),
				Description: words.text(80), Views: &n, Likes: &n, Comments: &n, Category: "10",
			})
		}
		_, _, err := c.Begin(b.Context(), catalog.ChartKey{Region: "US"}, "run", page)
		must(b, err)
		at = at.Add(time.Second)
	}
	server := &Server{Catalog: c, Regions: []string{"US"}, Log: slog.New(slog.DiscardHandler)}
	handler, err := server.Handler()
	must(b, err)
	web := httptest.NewServer(handler)
	b.Cleanup(func() {
		web.Close()
		must(b, c.Close())
	})
	return server, web.URL
}

// attack reports how many requests a second were answered and how long the slowest hundredth took.
func attack(b *testing.B, rate vegeta.Pacer, next func() string) {
	target := func(t *vegeta.Target) error {
		t.Method, t.URL = http.MethodGet, next()
		return nil
	}
	attacker := vegeta.NewAttacker(vegeta.Workers(16), vegeta.MaxWorkers(16),
		vegeta.Timeout(10*time.Second))
	var metrics vegeta.Metrics
	for result := range attacker.Attack(target, rate, 10*time.Second, b.Name()) {
		metrics.Add(result)
	}
	metrics.Close()
	if metrics.Success < 1 {
		b.Fatalf("%v: %v", metrics.StatusCodes, metrics.Errors)
	}
	b.ReportMetric(metrics.Throughput, "answers/s")
	b.ReportMetric(float64(metrics.Latencies.P50)/1e6, "p50-ms")
	b.ReportMetric(float64(metrics.Latencies.P99)/1e6, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSearch: two words, any of 20,000, in 200,000 videos; 50 searches a second.
func BenchmarkSearch(b *testing.B) {
	_, base := crowded(b, 200_000)
	words := newVocabulary()
	attack(b, vegeta.Rate{Freq: 50, Per: time.Second}, func() string {
		return base + "/v1/search?q=" + url.QueryEscape(words.text(2))
	})
}
