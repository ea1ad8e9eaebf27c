package serve

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"quotabudget/client"
	"quotabudget/internal/ledger/redistest"
)

// BenchmarkCharges makes charges over HTTP with the Go client, 64 callers at once, on each ledger,
// and compares them with requests answered without a ledger. Callers, server and ledger share the
// machine's cores.
func BenchmarkCharges(b *testing.B) {
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, `{"allowed":true,"units":{"default":1},"remaining":{"default":1}}`)
	}))
	defer bare.Close()
	for name, ledger := range map[string]string{
		"sqlite": "sqlite://" + filepath.Join(b.TempDir(), "ledger.db"),
		"redis":  redistest.Start(b, redistest.Options{}).URL(),
	} {
		s := &Server{Log: slog.New(slog.DiscardHandler)}
		limitedOn(b, ledger, "{bucket: default, units: 1000000000, window: 24h}")(s)
		handler, err := s.Handler()
		must(b, err)
		web := httptest.NewServer(handler)
		b.Cleanup(web.Close)
		b.Run(name, func(b *testing.B) {
			for range b.N {
				without, with := chargeAll(b, bare.URL), chargeAll(b, web.URL)
				b.ReportMetric(float64(len(with.waits))/with.took.Seconds(), "charges/s")
				b.ReportMetric(with.took.Seconds()/without.took.Seconds(), "x-bare-time")
				b.ReportMetric(with.p99(), "ms-p99")
				b.ReportMetric(without.p99(), "ms-p99-bare")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// charges holds the total and the individual durations of charges.
type charges struct {
	took  time.Duration
	waits []time.Duration
}

func (c charges) p99() float64 {
	return 1e3 * slices.Sorted(slices.Values(c.waits))[len(c.waits)*99/100].Seconds()
}

func chargeAll(b *testing.B, url string) charges {
	const callers, each = 64, 300
	ledger := &client.Client{URL: url,
		HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}}
	cost := client.Cost{Units: 1, Labels: map[string]string{"job": "night", "team": "ci"}}
	waits := make([][]time.Duration, callers)
	began := time.Now()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for range each {
				sent := time.Now()
				if _, err := ledger.Charge(b.Context(), cost, ""); err != nil {
					b.Error(err)
				}
				waits[i] = append(waits[i], time.Since(sent))
			}
		})
	}
	all.Wait()
	return charges{time.Since(began), slices.Concat(waits...)}
}
