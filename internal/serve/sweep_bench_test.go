package serve

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"quotabudget/internal/catalog"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/ingest"
	"quotabudget/internal/ledger"
	"quotabudget/internal/limit"
	"quotabudget/internal/meter"
	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/regions"
	"quotabudget/internal/standin"
	"quotabudget/internal/youtube"
)

const swept = "US,GB,DE,FR,IN,BR,AU,CA"

// sweeper sweeps eight regions of 200 videos, four pages each, into the catalogue, with four
// readers, from a stand-in whose answers take 50 ms. The answers are made once: what the upstream's
// processor does is not ours.
func sweeper(b *testing.B, c *catalog.Catalog) (sweep func(context.Context) time.Duration) {
	list, err := regions.ParseList(strings.Split(swept, ","))
	must(b, err)
	totals := map[string]int{}
	for _, region := range list {
		totals[string(region)] = 200
	}
	standin := &standin.YouTube{Charts: standin.Generator{Totals: totals, Days: 1}.Charts()}
	var answers sync.Map
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("regionCode") + r.URL.Query().Get("pageToken")
		body, ok := answers.Load(key)
		if !ok {
			answer := httptest.NewRecorder()
			standin.ServeHTTP(answer, r)
			body, _ = answers.LoadOrStore(key, answer.Body.Bytes())
		}
		time.Sleep(50 * time.Millisecond)
		w.Header().Set("Content-Type", "application/json")
		w.Write(body.([]byte))
	}))
	b.Cleanup(web.Close)
	ledger, err := ledger.OpenFile(b.Context(), filepath.Join(b.TempDir(), "ledger.db"))
	must(b, err)
	b.Cleanup(func() { must(b, ledger.Close()) })
	log, table := slog.New(slog.DiscardHandler), costs.Default()
	budget := config.Credential{Name: "key1", Limits: metertest.Units(1_000_000)}.Budget(
		ledger, table, log)
	gate, err := meter.New(web.URL, table, budget,
		func() (string, error) { return "some-key", nil }, log)
	must(b, err)
	base := meter.NewBase()
	b.Cleanup(base.CloseIdleConnections)
	gate.Base = base
	client, err := youtube.New(b.Context(), web.URL, gate)
	must(b, err)
	runs := 0
	return func(ctx context.Context) time.Duration {
		runs++
		s := &ingest.Sweep{Client: client, Catalog: c, Budget: budget, Regions: list, Parallel: 4,
			Pages: 4, Day: table.Buckets()[0].Reset, Job: "trending",
			Run: fmt.Sprintf("run%d", runs), Now: time.Now, Log: log}
		began := time.Now()
		if sum, err := s.Execute(ctx); err != nil || ctx.Err() == nil && sum.Outcome != "complete" {
			b.Errorf("swept %+v, %v", sum, err)
		}
		return time.Since(began)
	}
}

// beside runs work again and again until the function it returns is called.
func beside(work func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			work(ctx)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// fourLimits sets four limits, of which none denies.
func fourLimits(s *Server) {
	policy := func(name string, algorithm limit.Algorithm, window time.Duration) limit.Policy {
		return limit.Policy{Name: name, Units: 100_000_000, Window: window, Algorithm: algorithm}
	}
	guarded(
		limit.Rule{Policy: policy("charts", limit.Counter, time.Minute), By: limit.ByClient,
			Routes: []string{"GET /v1/charts/{region}"}},
		limit.Rule{Policy: policy("links", limit.Log, time.Minute), By: limit.ByClient,
			Routes: []string{"POST /v1/links"}},
		limit.Rule{Policy: policy("all", limit.Counter, time.Minute), By: limit.ByClient},
		limit.Rule{Policy: policy("everybody", limit.Counter, time.Hour), By: limit.Global},
	)(s)
	s.Guard.Caller, s.Guard.Stats = (&limit.Known{}).Of, &limit.Stats{}
}

// BenchmarkChart: sixteen clients read a chart of 200 videos as fast as they can, beside a sweep.
func BenchmarkChart(b *testing.B) {
	c, _ := crowd(b, 200)
	sweep := sweeper(b, c)
	sweep(b.Context())
	defer beside(func(ctx context.Context) { sweep(ctx) })()
	figures(b, clients{rate: vegeta.Rate{}, duration: 10 * time.Second,
		next: chartOf(served(b, c, nil))}.attack(b.Context(), b))
}

func chartOf(base string) func() string { return func() string { return base + "/v1/charts/US" } }

// fiveFields are as long as those under fourLimits.
var fiveFields = http.Header{
	"Ratelimit-Policy": {`"all";q=100000000;w=60, "everybody";q=100000000;w=3600, ` +
		`"charts";q=100000000;w=60`},
	"Ratelimit": {`"all";r=99990000;t=100, "everybody";r=99990000;t=5000, ` +
		`"charts";r=99990000;t=100`},
	"X-Ratelimit-Limit": {"100000000"}, "X-Ratelimit-Remaining": {"99990000"},
	"X-Ratelimit-Reset": {"5000"},
}

// telling is the address of a server without limits whose answers have fiveFields: the least that
// telling a client of limits can cost.
func telling(b *testing.B, c *catalog.Catalog) string {
	handler, err := (&Server{Catalog: c, Log: slog.New(slog.DiscardHandler)}).Handler()
	must(b, err)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), fiveFields)
		handler.ServeHTTP(w, r)
	}))
	b.Cleanup(web.Close)
	return web.URL
}

// BenchmarkLimiter: the same without a sweep, by turns without limits, with five fields that never
// change, and with four limits, read by clients that unpack the answers and by some that only take
// them. It compares the processor's time for an answer, the client's included, which other programs
// disturb less than the rate. The figures are medians.
func BenchmarkLimiter(b *testing.B) {
	c, _ := crowd(b, 200)
	bases := []string{served(b, c, nil), telling(b, c), served(b, c, fourLimits)}
	for name, unpack := range map[string]bool{"unpacked": true, "taken": false} {
		b.Run(name, func(b *testing.B) {
			var ratios, added [3][]float64
			for range 20 {
				var used [3]float64
				for i, base := range bases {
					before := processorTime(b)
					metrics := clients{rate: vegeta.Rate{}, duration: 500 * time.Millisecond,
						next: chartOf(base), unpack: unpack}.attack(b.Context(), b)
					used[i] = float64(processorTime(b)-before) / float64(metrics.Requests)
					ratios[i] = append(ratios[i], used[i]/used[0])
					added[i] = append(added[i], (used[i]-used[0])/1e3)
				}
			}
			b.ReportMetric(median(added[1]), "fields-added-µs")
			b.ReportMetric(median(ratios[1]), "fields-of-unlimited")
			b.ReportMetric(median(added[2]), "added-µs")
			b.ReportMetric(median(ratios[2]), "of-unlimited")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkSweepBeside: sweeps by turns alone and beside 500 reads of charts a second. The ratio is
// the median one.
func BenchmarkSweepBeside(b *testing.B) {
	c, _ := crowd(b, 200)
	sweep, base := sweeper(b, c), served(b, c, fourLimits)
	sweep(b.Context())
	list, n := strings.Split(swept, ","), 0
	reads := func(ctx context.Context) {
		rate := vegeta.Rate{Freq: 500, Per: time.Second}
		clients{rate: rate, duration: time.Minute, next: func() string {
			n++
			return base + "/v1/charts/" + list[n%len(list)]
		}}.attack(ctx, b)
	}
	var ratios []float64
	for range 21 {
		alone := sweep(b.Context())
		stop := beside(reads)
		ratios = append(ratios, float64(sweep(b.Context()))/float64(alone))
		stop()
	}
	b.ReportMetric(median(ratios), "of-alone")
	b.ReportMetric(0, "ns/op")
}
