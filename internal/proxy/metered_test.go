package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/meter"
	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/proxy"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// metered is a proxy in front of several stand-ins, with one ledger.
type metered struct {
	ledger   *ledger.Ledger
	proxy    *proxy.Proxy
	standins map[string]*standin.Server
	asked    map[string]chan http.Header // of the requests that came to each, while there is room
	log      metertest.Log
	URL      string
}

// limited are the limits of a test, by upstream.
type limited map[string][]quota.Limit

// meteredOn starts stand-ins and a proxy; change sets them up before the first request.
func meteredOn(t testing.TB, l *ledger.Ledger, limits limited, change ...func(*metered)) *metered {
	t.Helper()
	m := &metered{ledger: l, standins: map[string]*standin.Server{},
		asked: map[string]chan http.Header{}}
	log := slog.New(slog.NewTextHandler(&m.log, nil))
	m.proxy = &proxy.Proxy{Limits: proxy.DefaultLimits(), Metrics: proxy.NewMetrics(), Log: log}
	for _, name := range []string{"generic", "openai", "anthropic"} {
		s, err := standin.New(name)
		must(t, err)
		s.Keys, s.Prices = []string{canary}, map[string]float64{}
		s.Limits = map[string][]standin.Limit{}
		asked := make(chan http.Header, 100)
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case asked <- r.Header.Clone():
			default:
			}
			s.ServeHTTP(w, r)
		}))
		t.Cleanup(web.Close)
		m.standins[name], m.asked[name] = s, asked
		table, err := costs.Shipped().Upstream(name)
		must(t, err)
		cred := config.Credential{Name: name, Upstream: name, Limits: limits[name]}
		gate := metertest.Gate(t, web.URL, table, cred.Budget(l, table, log), log)
		gate.Missed = m.proxy.Metrics.Missed
		to, err := url.Parse(web.URL)
		must(t, err)
		m.proxy.Upstreams = append(m.proxy.Upstreams,
			&proxy.Upstream{Name: name, Transport: gate, Endpoint: to})
	}
	for _, f := range change {
		f(m)
	}
	m.URL = serve(t, m.proxy, "127.0.0.1:0").URL
	return m
}

// TestOneName: only one name is removed from a path. The rest is the upstream's path.
func TestOneName(t *testing.T) {
	m := meteredOn(t, metertest.File(t), limited{})
	get(t, m.URL+"/generic/openai/v1/models")
	if n := m.standins["openai"].Counts().Requests; n != 0 || len(m.asked["generic"]) != 1 {
		t.Errorf("%d requests to openai, %d to generic", n, len(m.asked["generic"]))
	}
}

// TestNamedOnly: without a default, a path that names no upstream is refused.
func TestNamedOnly(t *testing.T) {
	m := meteredOn(t, metertest.File(t), limited{}, func(m *metered) {
		m.proxy.NamedOnly, m.proxy.Unserved = true, []string{"x"}
	})
	byDefault := meteredOn(t, metertest.File(t), limited{}, func(m *metered) {
		m.proxy.Upstreams = m.proxy.Upstreams[1:] // the default is openai
	})
	for path, want := range map[string]string{
		"/opneai/v1/models":  `no price, and no upstream \"opneai\" is served here (did you mean`,
		"/openai/v1/nothing": "quotactl costs --upstream NAME lists the methods with their routes",
	} {
		a := get(t, byDefault.URL+path)
		if !strings.Contains(a.body, want) || a.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	for path, want := range map[string]string{
		"/opneai/v1/models": `no upstream \"opneai\" is served here (did you mean openai?): ` +
			`paths begin with /generic/, /openai/, /anthropic/`,
		"/OpenAI/v1/models": "did you mean openai?", "/v1/models": "paths begin with",
		"/": "paths begin with", "/x/2/tweets": "the proxy has no key for x",
		"/openai/v1/models": `"gpt-standin"`,
	} {
		a := get(t, m.URL+path)
		if !strings.Contains(a.body, want) || (a.status == 200) != (want[0] == '"') {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if n := len(m.asked["generic"]) + len(m.asked["anthropic"]); n != 0 {
		t.Errorf("%d requests went to others", n)
	}
}

// answering replaces an upstream's stand-in by a handler. When the test ends, it closes connections
// whose responses have no end.
func answering(t testing.TB, name string, answer http.HandlerFunc) func(*metered) {
	return func(m *metered) {
		web := httptest.NewServer(answer)
		t.Cleanup(web.Close)
		t.Cleanup(web.CloseClientConnections)
		m.send(t, name, web.URL)
	}
}

// send redirects an upstream's requests to another address.
func (m *metered) send(t testing.TB, name, address string) {
	t.Helper()
	to, err := url.Parse(address)
	must(t, err)
	for _, u := range m.proxy.Upstreams {
		if u.Name == name {
			u.Endpoint, u.Transport.Host = to, to.Host
		}
	}
}

func (m *metered) gate(name string) *meter.Transport {
	for _, u := range m.proxy.Upstreams {
		if u.Name == name {
			return u.Transport
		}
	}
	return nil
}

// post sends JSON to the proxy.
func (m *metered) post(ctx context.Context, path, body string, header ...string) (
	*http.Response, error) {
	return http.DefaultClient.Do(m.request(ctx, path, body, header))
}

// request returns a POST as a program sends it to any of the APIs.
func (m *metered) request(ctx context.Context, path, body string, header []string) *http.Request {
	return newRequest(ctx, "POST", m.URL+path, body, append(header,
		"Content-Type", "application/json", "Anthropic-Version", "2023-06-01"))
}

// ask sends JSON to the proxy and reads the response to its end.
func (m *metered) ask(t testing.TB, path, body string, header ...string) (int, string) {
	t.Helper()
	a := read(t, m.request(t.Context(), path, body, header))
	return a.status, a.body
}

// settled waits until nothing is open.
func (m *metered) settled(t testing.TB) {
	t.Helper()
	await(t, func() bool { return m.proxy.UnderWay() == 0 })
	for _, u := range m.proxy.Upstreams {
		await(t, func() bool { return u.Transport.Open() == 0 })
	}
}

// booked returns the units in the ledger by bucket, without use by other programs, and the units
// still held.
func (m *metered) booked(t testing.TB, credential string) (units map[string]int64, sum int64) {
	t.Helper()
	units, held := metertest.Booked(t, m.ledger, credential)
	for _, n := range held {
		sum += n
	}
	return units, sum
}

// agree checks that the ledger has exactly what the stand-in billed, and no holds.
func (m *metered) agree(t testing.TB, name string) {
	t.Helper()
	m.settled(t)
	booked, held := m.booked(t, name)
	billed := m.standins[name].Counts().Units
	for bucket, units := range billed {
		if booked[bucket] != units {
			t.Errorf("%s: %d of %s are booked, %d were billed", name, booked[bucket], bucket, units)
		}
	}
	for bucket, units := range booked {
		if _, known := billed[bucket]; !known && units > 0 {
			t.Errorf("%s: %d of %s are booked, none were billed", name, units, bucket)
		}
	}
	if held != 0 || len(billed) == 0 {
		t.Errorf("%s: %d are held, billed: %v", name, held, billed)
	}
}

const (
	chatPath    = "/openai/v1/chat/completions"
	messagePath = "/anthropic/v1/messages"
)

// chat is a request of a stream of OpenAI's; message is one of Anthropic's.
func chat(n, output int) string {
	return fmt.Sprintf(`{"model":"gpt-4.1","max_tokens":400,"stream":true,
		"stream_options":{"include_usage":true},
		"messages":[{"role":"user","content":"%d [[output:%d]]"}]}`, n, output)
}

func message(n, output int) string {
	return fmt.Sprintf(`{"model":"other","max_tokens":400,"stream":true,
		"messages":[{"role":"user","content":"%d [[output:%d]]"}]}`, n, output)
}

// quiet gives the stand-ins limits that are never reached, and the prices of their lists.
func quiet(m *metered) {
	many := []standin.Limit{{Units: 1 << 40, Window: time.Minute}}
	o, a := m.standins["openai"], m.standins["anthropic"]
	o.Limits["requests"], o.Limits["tokens"] = many, many
	o.Prices["input"], o.Prices["cached"], o.Prices["output"] = 2, 0.5, 8
	a.Limits["requests"], a.Limits["input"], a.Limits["output"] = many, many, many
	a.Prices["input"], a.Prices["output"] = 15, 75
}

// TestStreams: 50 concurrent streams of two upstreams; callers cut a third of them, and a failing
// server refuses some. In the end the ledger has exactly what was billed.
func TestStreams(t *testing.T) {
	t.Parallel()
	m := meteredOn(t, metertest.File(t), limited{"openai": {{Bucket: "tokens", Units: 1 << 40,
		Window: quota.Sliding(time.Minute)}}}, quiet, func(m *metered) {
		for _, name := range []string{"openai", "anthropic"} {
			s := m.standins[name]
			s.Pace, s.Faults = 2*time.Millisecond, []string{"503/11"}
		}
	})
	m.streams(t, 50)
	m.agree(t, "openai")
	m.agree(t, "anthropic")
	for _, name := range []string{"openai", "anthropic"} {
		if c := m.standins[name].Counts(); c.Cut != 0 || c.Requests != 25 {
			t.Errorf("%s counted %+v: every answer is read to its end", name, c)
		}
	}
	billed := m.standins["openai"].Counts().Units["tokens/gpt-4.1"]
	if units := m.metric(t, "proxy_units_total tokens/gpt-4.1"); units != billed {
		t.Errorf("%d tokens are counted, %d were billed, callers hung up or not", units, billed)
	}
	if log := m.log.String(); strings.Contains(log, canary) || strings.Contains(log, "sk-mine") {
		t.Error("a key is in the log")
	}
}

// streams sends n concurrent requests.
func (m *metered) streams(t testing.TB, n int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		path, body := chatPath, chat(i, 20+i)
		if i%2 == 1 {
			path, body = "/anthropic/v1/messages", message(i, 20+i)
		}
		all.Go(func() {
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			resp, err := m.post(ctx, path, body, "Authorization", "Bearer sk-mine")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if i%3 == 0 {
				bufio.NewReader(resp.Body).ReadString('\n')
				return
			}
			if _, err := io.ReadAll(resp.Body); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestStreamsWithoutRedis: while streams are under way, the ledger's server is down or read-only.
// Their usage is booked once it is back.
func TestStreamsWithoutRedis(t *testing.T) {
	t.Parallel()
	t.Run("gone", func(t *testing.T) {
		streamsWithout(t, func(s *redistest.Server) { s.Kill() },
			func(s *redistest.Server) { s.Restart(t) })
	})
	t.Run("read-only", func(t *testing.T) {
		follow := func(host, port string) func(*redistest.Server) {
			return func(s *redistest.Server) {
				admin := redis.NewClient(&redis.Options{Addr: s.Addr})
				defer admin.Close()
				must(t, admin.ReplicaOf(t.Context(), host, port).Err())
			}
		}
		streamsWithout(t, follow("127.0.0.1", "1"), follow("NO", "ONE"))
	})
}

func streamsWithout(t *testing.T, end, back func(*redistest.Server)) {
	server := redistest.Start(t, redistest.Options{AOF: true})
	l, err := ledger.Open(t.Context(), server.URL())
	must(t, err)
	t.Cleanup(func() { l.Close() })
	m := meteredOn(t, l, nil, quiet, func(m *metered) {
		m.standins["openai"].Pace = 20 * time.Millisecond
	})
	var begun, all sync.WaitGroup
	for i := range 20 {
		begun.Add(1)
		all.Go(func() {
			resp, err := m.post(t.Context(), chatPath, chat(i, 30))
			if err != nil {
				t.Error(err)
				begun.Done()
				return
			}
			defer resp.Body.Close()
			in := bufio.NewReader(resp.Body)
			in.ReadString('\n')
			begun.Done()
			if _, err := io.ReadAll(in); err != nil {
				t.Error(err)
			}
		})
	}
	begun.Wait()
	end(server)
	all.Wait() // the callers have their answers, whatever the ledger does
	if status, _ := m.ask(t, chatPath, chat(99, 30)); status != http.StatusServiceUnavailable {
		t.Errorf("a call without a ledger is answered %d", status)
	}
	back(server)
	m.agree(t, "openai")
}

// TestCredentials: the credential replaces the caller's, wherever the upstream takes it. See also
// TestTwoUpstreams.
func TestCredentials(t *testing.T) {
	t.Parallel()
	m := meteredOn(t, metertest.File(t), nil, quiet)
	for _, header := range []string{"Authorization", "X-Api-Key", "OpenAI-Organization"} {
		if status, body := m.ask(t, chatPath, chat(1, 3), header, "Bearer sk-mine"); status != 200 {
			t.Errorf("%s: %d %s", header, status, body)
			continue
		}
		sent := fmt.Sprint(<-m.asked["openai"])
		if strings.Contains(sent, "sk-mine") || !strings.Contains(sent, canary) {
			t.Errorf("%s: sent %v", header, sent)
		}
	}
	m.agree(t, "openai")
}
