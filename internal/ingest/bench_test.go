package ingest_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"quotabudget/internal/youtube/youtubetest"
)

// BenchmarkSweep sweeps 8 regions of 4 pages each, ledger and catalogue on disk, against a stand-in whose answers take 50 ms, and
// reports how many times as long that takes as the same 32 answers alone, one after the other.
func BenchmarkSweep(b *testing.B) {
	totals := map[string]int{}
	for _, region := range []string{"US", "GB", "DE", "FR", "IN", "BR", "AU", "CA"} {
		totals[region] = 200
	}
	charts := youtubetest.Generator{Totals: totals}.Charts()
	var swept, alone time.Duration
	for b.Loop() {
		b.StopTimer()
		s := open(b, &youtubetest.Server{Charts: charts, Latency: 50 * time.Millisecond}, units(1000))
		alone += s.answersAlone(b)
		sweep := s.sweep(b, eight, 4)
		b.StartTimer()
		began := time.Now()
		sum, err := sweep.Execute(b.Context())
		swept += time.Since(began)
		if err != nil || sum.Outcome != "complete" || sum.Units["default"] != 32 {
			b.Fatalf("swept %s, %v", written(sum), err)
		}
	}
	b.ReportMetric(float64(swept)/float64(alone), "times-the-answers")
	b.ReportMetric(float64(alone.Milliseconds())/float64(b.N), "ms-answers/op")
}

// answersAlone is how long the 32 answers take a plain client that only reads them.
func (s *station) answersAlone(b *testing.B) time.Duration {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	began := time.Now()
	for _, region := range s.sweep(b, eight, 4).Regions {
		for _, token := range []string{"", "&pageToken=CDIQAA", "&pageToken=CGQQAA", "&pageToken=CJYBEAA"} {
			r, err := http.NewRequest("GET", s.upstream.URL+"/youtube/v3/videos?alt=json&prettyPrint=false&chart=mostPopular&maxResults=50"+
				"&part=snippet&part=contentDetails&part=statistics&regionCode="+string(region)+token, nil)
			if err != nil {
				b.Fatal(err)
			}
			r.Header.Set("X-Goog-Api-Key", "some-key")
			resp, err := client.Do(r)
			if err != nil || resp.StatusCode != http.StatusOK {
				b.Fatal(resp, err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				b.Fatal(err)
			}
			resp.Body.Close()
		}
	}
	return time.Since(began)
}
