package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
)

// BenchmarkProxy compares the proxy with a bare httputil.ReverseProxy in front of the same server:
// calls of a known price, calls that are held and settled, and streams of the latter, on each
// ledger. In a closed loop, the latency follows from the concurrency and the throughput, so one row
// sends 3,000 calls a second regardless of their latency.
func BenchmarkProxy(b *testing.B) {
	web := httptest.NewServer(http.HandlerFunc(answerChat))
	defer web.Close()
	to, err := url.Parse(web.URL)
	must(b, err)
	bare := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			// Read the whole body first: the upstream may answer before it has read the request.
			body, _ := io.ReadAll(r.In.Body)
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 100}})
	defer bare.Close()
	minute := quota.Sliding(time.Minute)
	limits := []quota.Limit{{Bucket: "tokens", Units: 1 << 40, Window: minute},
		{Bucket: "requests", Units: 1 << 40, Window: minute}}
	server := redistest.Start(b, redistest.Options{})
	redis, err := ledger.Open(b.Context(), server.URL())
	must(b, err)
	b.Cleanup(func() { redis.Close() })
	stream := chat(1, 9)
	whole := strings.Replace(stream, `"stream":true`, `"stream":false`, 1)
	for name, l := range map[string]*ledger.Ledger{"sqlite": metertest.File(b), "redis": redis} {
		m := meteredOn(b, l, limits, func(m *metered) {
			m.openai.Endpoint = to
			m.proxy.Limits.Requests = 1000
		})
		for kind, c := range map[string]pair{
			"known":    {"/v1/models", "", 1000, 32, 0},
			"held":     {"/v1/chat/completions", whole, 1000, 32, 0},
			"held16":   {"/v1/chat/completions", whole, 1000, 16, 0},
			"held8":    {"/v1/chat/completions", whole, 1000, 8, 0},
			"held3000": {"/v1/chat/completions", whole, 3000, 100, 3000},
			"stream":   {"/v1/chat/completions", stream, 100, 8, 0}} {
			b.Run(name+"/"+kind, func(b *testing.B) { c.compare(b, bare.URL, m.URL+"/openai") })
		}
		m.awaitSettled(b)
	}
}

// answerChat answers like a model: at once, or with 20 events 2 ms apart.
func answerChat(w http.ResponseWriter, r *http.Request) {
	const usage = `"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29}}`
	body, _ := io.ReadAll(r.Body)
	if !strings.Contains(string(body), `"stream":true`) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"a","object":"chat.completion","choices":[],`+usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range 20 {
		if i > 0 {
			time.Sleep(2 * time.Millisecond)
		}
		fmt.Fprintf(w, "data: {\"id\":\"a\",\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n", i)
		http.NewResponseController(w).Flush()
	}
	fmt.Fprintf(w, "data: {\"id\":\"a\",\"choices\":[],%s\n\ndata: [DONE]\n\n", usage)
}

// pair is a call to make both ways, with the size and the maximum concurrency of a burst.
type pair struct {
	path, body  string
	calls, side int
	rate        int // calls per second; 0 for a closed loop
}

// compare makes the calls both ways, in turns so that both meet the same machine. The processor's
// time covers client, proxy, server and SQLite, or without our proxy for the bare one.
func (c pair) compare(b *testing.B, bare, proxied string) {
	const rounds = 4
	for range b.N {
		var without, with burst
		for range rounds {
			without.run(b, bare, c)
			with.run(b, proxied, c)
		}
		made := float64(rounds * c.calls)
		b.ReportMetric(made/with.took.Seconds(), "requests/s")
		b.ReportMetric(with.took.Seconds()/without.took.Seconds(), "x-bare-time")
		b.ReportMetric(1e3*ms(with.cpu-without.cpu)/made, "µs-cpu-added")
		b.ReportMetric(ms(at(with.waits, 99)-at(without.waits, 99)), "ms-p99-added")
		b.ReportMetric(ms(at(with.firsts, 50)-at(without.firsts, 50)), "ms-first-byte-p50-added")
		b.ReportMetric(ms(at(with.firsts, 99)-at(without.firsts, 99)), "ms-first-byte-p99-added")
	}
	b.ReportMetric(0, "ns/op")
}

// burst is the duration of a burst: in all, of the processor, and of each call to its first and
// last byte.
type burst struct {
	took, cpu     time.Duration
	firsts, waits []time.Duration
}

func (t *burst) run(b *testing.B, to string, c pair) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.side}}
	defer client.CloseIdleConnections()
	firsts, waits := make([]time.Duration, c.calls), make([]time.Duration, c.calls)
	var all sync.WaitGroup
	began, cpu := time.Now(), processor(b)
	for worker := range c.side {
		all.Go(func() {
			for i := worker; i < c.calls && !b.Failed(); i += c.side {
				at := time.Now()
				if c.rate > 0 { // one that could not begin in time has waited since
					at = began.Add(time.Duration(i) * time.Second / time.Duration(c.rate))
					time.Sleep(time.Until(at))
				}
				var err error
				if firsts[i], waits[i], err = c.time(client, to, at); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	t.took, t.cpu = t.took+time.Since(began), t.cpu+processor(b)-cpu
	t.firsts, t.waits = append(t.firsts, firsts...), append(t.waits, waits...)
}

// time makes the call, and returns the times from a moment to its first and last byte.
func (c pair) time(client *http.Client, to string, at time.Time) (first, last time.Duration,
	err error) {
	body, err := c.call(client, to)
	if err != nil {
		return 0, 0, err
	}
	defer body.Close()
	if _, err = io.ReadFull(body, make([]byte, 1)); err != nil {
		return 0, 0, err
	}
	first = time.Since(at)
	_, err = io.Copy(io.Discard, body)
	return first, time.Since(at), err
}

// call makes the call, which must succeed.
func (c pair) call(client *http.Client, to string) (io.ReadCloser, error) {
	send := front{URL: to, client: client}.send
	verb, header := http.MethodGet, []string(nil)
	if c.body != "" {
		verb, header = http.MethodPost, []string{"Content-Type", "application/json"}
	}
	resp, err := send(context.Background(), verb, c.path, c.body, header...)
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		err = fmt.Errorf("answered %s", resp.Status)
	}
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// processor returns the processor time of this process.
func processor(b *testing.B) time.Duration {
	var used syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// at returns a percentile.
func at(all []time.Duration, percent int) time.Duration {
	slices.Sort(all)
	return all[len(all)*percent/100]
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }
