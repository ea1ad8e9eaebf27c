package proxy_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/ledger/redisledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// BenchmarkProxy compares the proxy with a bare httputil.ReverseProxy in front of the same server:
// calls whose price is known, and calls that are held and settled, on each ledger, 32 at once.
func BenchmarkProxy(b *testing.B) {
	const answer = `{"id":"a","object":"chat.completion","choices":[],` +
		`"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29}}`
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer)
	}))
	defer web.Close()
	to, err := url.Parse(web.URL)
	must(b, err)
	bare := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 100}})
	defer bare.Close()
	minute := quota.Sliding(time.Minute)
	limits := limited{"openai": {{Bucket: "tokens", Units: 1 << 40, Window: minute},
		{Bucket: "requests", Units: 1 << 40, Window: minute}}}
	server := redistest.Start(b, redistest.Options{})
	redis, err := redisledger.Open(b.Context(), server.URL())
	must(b, err)
	b.Cleanup(func() { redis.Close() })
	for name, l := range map[string]quota.Ledger{"sqlite": onFile(b), "redis": redis} {
		m := meteredOn(b, l, limits, func(m *metered) {
			m.gate("openai").Host, m.proxy.Upstreams[1].Endpoint = to.Host, to
			m.proxy.Limits.Requests = 1000
		})
		b.Run(name+"/known", func(b *testing.B) {
			compare(b, bare.URL+"/v1/models", m.URL+"/openai/v1/models", "")
		})
		b.Run(name+"/held", func(b *testing.B) {
			compare(b, bare.URL+"/v1/chat/completions", m.URL+"/openai/v1/chat/completions",
				strings.Replace(chat(1, 9), `"stream":true`, `"stream":false`, 1))
		})
		m.settled(b)
	}
}

// compare runs calls to both, in turns so that both meet the same machine.
func compare(b *testing.B, bare, proxied, body string) {
	const rounds, calls = 4, 1000
	for range b.N {
		var tookBare, took time.Duration
		var waitsBare, waits []time.Duration
		for range rounds {
			t, w := burst(b, bare, body, calls)
			tookBare, waitsBare = tookBare+t, append(waitsBare, w...)
			t, w = burst(b, proxied, body, calls)
			took, waits = took+t, append(waits, w...)
		}
		b.ReportMetric(rounds*calls/took.Seconds(), "requests/s")
		b.ReportMetric(took.Seconds()/tookBare.Seconds(), "x-bare-time")
		b.ReportMetric(ms(p99(waits)), "ms-p99")
		b.ReportMetric(ms(p99(waits)-p99(waitsBare)), "ms-p99-added")
	}
	b.ReportMetric(0, "ns/op")
}

func burst(b *testing.B, to, body string, n int) (time.Duration, []time.Duration) {
	const side = 32
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: side}}
	defer client.CloseIdleConnections()
	waits := make([]time.Duration, n)
	var all sync.WaitGroup
	began := time.Now()
	for worker := range side {
		all.Go(func() {
			for i := worker; i < n; i += side {
				at := time.Now()
				verb := "POST"
				if body == "" {
					verb = "GET"
				}
				r, err := http.NewRequest(verb, to, bytes.NewReader([]byte(body)))
				if err != nil {
					b.Error(err)
					return
				}
				if body != "" {
					r.Header.Set("Content-Type", "application/json")
				}
				resp, err := client.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if waits[i] = time.Since(at); resp.StatusCode != 200 {
					b.Errorf("%d %s", resp.StatusCode, text)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(began), waits
}

func p99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100]
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }
