package ingest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/youtube/youtubetest"
)

// BenchmarkSweep sweeps regions of 4 pages each, ledger and catalogue on disk, against a stand-in
// whose answers take their time. It reports how many times as long that takes as the same answers
// take as many plain clients, which only read them, and of what one reader takes. The answers are
// made once, before: what the upstream's processor does is not ours.
func BenchmarkSweep(b *testing.B) {
	many := youtubetest.Generator{Days: 1}.Charts().Regions(0)
	for _, c := range []struct {
		name    string
		list    []string
		latency time.Duration
		readers int
	}{
		{"8x4x50ms/readers=1", strings.Split(eight, ","), 50 * time.Millisecond, 1},
		{"8x4x50ms/readers=4", strings.Split(eight, ","), 50 * time.Millisecond, 4},
		{"8x4x50ms/readers=8", strings.Split(eight, ","), 50 * time.Millisecond, 8},
		{fmt.Sprintf("%dx4x200ms/readers=4", len(many)), many, 200 * time.Millisecond, 4},
	} {
		b.Run(c.name, func(b *testing.B) { sweepAndAnswers(b, c.list, c.latency, c.readers) })
	}
}

func sweepAndAnswers(b *testing.B, list []string, latency time.Duration, readers int) {
	totals := map[string]int{}
	for _, region := range list {
		totals[region] = 200
	}
	charts := youtubetest.Generator{Totals: totals, Days: 1}.Charts()
	var swept, answers, ofOne time.Duration
	for b.Loop() {
		b.StopTimer()
		standin := &youtubetest.Server{Charts: charts}
		upstream := recorded(standin, latency)
		ready := func() *station {
			s := open(b, standin, units(1000))
			s.upstream.Config.Handler = upstream
			return s
		}
		s := ready()
		s.answersAlone(b, list, 8) // makes them
		answers += s.answersAlone(b, list, readers)
		if readers > 1 && len(list) < 100 {
			ofOne += ready().timed(b, list, 1)
		}
		b.StartTimer()
		swept += s.timed(b, list, readers)
	}
	b.ReportMetric(float64(swept)/float64(answers), "times-the-answers")
	if ofOne > 0 {
		b.ReportMetric(float64(swept)/float64(ofOne), "of-one-reader")
	}
	b.ReportMetric(float64(answers.Milliseconds())/float64(b.N), "ms-answers/op")
}

// recorded serves the answers of a stand-in again, each after the latency.
func recorded(standin http.Handler, latency time.Duration) http.HandlerFunc {
	var bodies sync.Map
	return func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("regionCode") + r.URL.Query().Get("pageToken")
		body, ok := bodies.Load(key)
		if !ok {
			answer := httptest.NewRecorder()
			standin.ServeHTTP(answer, r)
			body, _ = bodies.LoadOrStore(key, answer.Body.Bytes())
		}
		time.Sleep(latency)
		w.Header().Set("Content-Type", "application/json")
		w.Write(body.([]byte))
	}
}

// timed is how long a sweep takes.
func (s *station) timed(b *testing.B, list []string, readers int) time.Duration {
	sweep := s.sweep(b, strings.Join(list, ","), 4)
	sweep.Parallel = readers
	began := time.Now()
	sum, err := sweep.Execute(b.Context())
	took := time.Since(began)
	if err != nil || sum.Outcome != "complete" || sum.Units["default"] != int64(4*len(list)) {
		b.Fatalf("swept %s, %v", written(sum), err)
	}
	return took
}

// answersAlone is how long the answers take so many plain clients.
func (s *station) answersAlone(b *testing.B, list []string, clients int) time.Duration {
	left := make(chan string)
	var all sync.WaitGroup
	began := time.Now()
	for range clients {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for region := range left {
				for _, token := range []string{"", "&pageToken=CDIQAA", "&pageToken=CGQQAA", "&pageToken=CJYBEAA"} {
					if err := s.answer(client, region, token); err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	for _, region := range list {
		left <- region
	}
	close(left)
	all.Wait()
	return time.Since(began)
}

func (s *station) answer(client *http.Client, region, token string) error {
	r, err := http.NewRequest("GET", s.upstream.URL+"/youtube/v3/videos?alt=json&prettyPrint=false"+
		"&chart=mostPopular&maxResults=50&part=snippet&part=contentDetails&part=statistics"+
		"&regionCode="+region+token, nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-Goog-Api-Key", "some-key")
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
