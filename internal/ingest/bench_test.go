package ingest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/standin"
)

// BenchmarkSweep sweeps regions of 4 pages each, with ledger and catalogue on disk, against a
// stand-in that delays every response. It reports the sweep's time as a multiple of the time
// spent waiting for responses, and of the time one reader takes. The responses are rendered
// beforehand, so that the stand-in's CPU time does not count.
func BenchmarkSweep(b *testing.B) {
	many := standin.Generator{Days: 1}.Charts().Regions(0)
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
	charts := standin.Generator{Totals: totals, Days: 1}.Charts()
	answers := latency * time.Duration(4*len(list)/readers)
	var swept, ofOne time.Duration
	for b.Loop() {
		b.StopTimer()
		standin := &standin.YouTube{Charts: charts}
		wait := latency
		upstream := recorded(standin, &latency)
		ready := func() *env {
			s := open(b, standin, units(1000))
			s.upstream.Config.Handler = upstream
			return s
		}
		latency = 0
		ready().timed(b, list, 8) // renders the responses
		latency = wait
		if readers > 1 && len(list) < 100 {
			ofOne += ready().timed(b, list, 1)
		}
		s := ready()
		b.StartTimer()
		swept += s.timed(b, list, readers)
	}
	b.ReportMetric(float64(swept)/float64(b.N)/float64(answers), "times-the-answers")
	if ofOne > 0 {
		b.ReportMetric(float64(swept)/float64(ofOne), "of-one-reader")
	}
}

// recorded replays the responses of a stand-in, each after the latency.
func recorded(standin http.Handler, latency *time.Duration) http.HandlerFunc {
	var bodies sync.Map
	return func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("regionCode") + r.URL.Query().Get("pageToken")
		body, ok := bodies.Load(key)
		if !ok {
			answer := httptest.NewRecorder()
			standin.ServeHTTP(answer, r)
			body, _ = bodies.LoadOrStore(key, answer.Body.Bytes())
		}
		time.Sleep(*latency)
		w.Header().Set("Content-Type", "application/json")
		w.Write(body.([]byte))
	}
}

// timed returns how long a sweep takes.
func (s *env) timed(b *testing.B, list []string, readers int) time.Duration {
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
