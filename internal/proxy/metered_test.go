package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// TestNamedOnly: the proxy removes only one name from a path; the rest is the upstream's path.
// Without a default upstream, it refuses a path that names none.
func TestNamedOnly(t *testing.T) {
	open := func(change func(*metered)) *metered {
		return meteredOn(t, metertest.File(t), nil, change)
	}
	m := open(func(m *metered) { m.proxy.NamedOnly, m.proxy.Unserved = true, []string{"x"} })
	byDefault := open(func(m *metered) {
		m.proxy.Upstreams = m.proxy.Upstreams[1:] // the default is openai
	})
	for _, c := range []struct {
		m          *metered
		path, want string
		status     int
	}{
		{byDefault, "/opneai/v1/models",
			`no price, and no upstream \"opneai\" is served here (did you mean`, 404},
		{byDefault, "/openai/v1/nothing",
			"quotactl costs --upstream NAME lists the methods with their routes", 404},
		{m, "/opneai/v1/models", `no upstream \"opneai\" is served here (did you mean openai?): ` +
			`paths begin with /generic/, /openai/, /anthropic/`, 404},
		{m, "/OpenAI/v1/models", "did you mean openai?", 404},
		{m, "/v1/models", "paths begin with", 404},
		{m, "/", "paths begin with", 404},
		{m, "/x/2/tweets", "the proxy has no key for x", 404},
		{m, "/openai/v1/models", `"gpt-standin"`, 200},
	} {
		if a := c.m.get(t, c.path); !strings.Contains(a.body, c.want) || a.status != c.status {
			t.Errorf("%s: %d %s", c.path, a.status, a.body)
		}
	}
	if n := len(m.generic.asked) + len(m.anthropic.asked); n != 0 {
		t.Errorf("%d requests went to others", n)
	}
	m.get(t, "/generic/openai/v1/models")
	if len(m.openai.asked) != 1 || len(m.generic.asked) != 1 {
		t.Errorf("%d requests to openai, %d to generic", len(m.openai.asked), len(m.generic.asked))
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
	o, a := m.openai.standin, m.anthropic.standin
	o.Limits["requests"], o.Limits["tokens"] = many, many
	o.Prices["input"], o.Prices["cached"], o.Prices["output"] = 2, 0.5, 8
	a.Limits["requests"], a.Limits["input"], a.Limits["output"] = many, many, many
	a.Prices["input"], a.Prices["output"] = 15, 75
}

// TestStreams: 50 concurrent streams of two upstreams; callers cut a third of them, and a failing
// server refuses some. In the end the ledger has exactly what was billed.
func TestStreams(t *testing.T) {
	t.Parallel()
	m := meteredOn(t, metertest.File(t), []quota.Limit{{Bucket: "tokens", Units: 1 << 40,
		Window: quota.Sliding(time.Minute)}}, quiet)
	both := []*upstream{m.openai, m.anthropic}
	for _, u := range both {
		u.standin.Pace, u.standin.Faults = 2*time.Millisecond, []string{"503/11"}
	}
	var all sync.WaitGroup
	for i := range 50 {
		path, body := chatPath, chat(i, 20+i)
		if i%2 == 1 {
			path, body = messagePath, message(i, 20+i)
		}
		all.Go(func() {
			m.stream(t, path, body, func(first *bufio.Reader) (goesOn bool) {
				if i%3 == 0 {
					first.ReadString('\n')
				}
				return i%3 != 0
			})
		})
	}
	all.Wait()
	for _, u := range both {
		m.expectBilled(t, u)
		if c := u.standin.Counts(); c.Cut != 0 || c.Requests != 25 {
			t.Errorf("%s counted %+v: the proxy did not read every answer to its end", u.Name, c)
		}
	}
	billed := m.openai.standin.Counts().Units["tokens/gpt-4.1"]
	if units := m.metric(t, "proxy_units_total tokens/gpt-4.1"); units != billed {
		t.Errorf("%d tokens are counted, %d were billed, callers hung up or not", units, billed)
	}
	if log := m.log.String(); strings.Contains(log, canary) || strings.Contains(log, "sk-mine") {
		t.Error("a key is in the log")
	}
}

// stream requests a stream and calls begun to read its first part. If begun returns true, stream
// reads the rest; otherwise it disconnects.
func (m *metered) stream(t testing.TB, path, body string, begun func(*bufio.Reader) bool) {
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	resp, err := m.post(ctx, path, body, "Authorization", "Bearer sk-mine")
	if err != nil {
		t.Error(err)
		begun(bufio.NewReader(http.NoBody))
		return
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	if !begun(in) {
		return
	}
	if _, err := io.ReadAll(in); err != nil {
		t.Error(err)
	}
}

// TestStreamsWithoutRedis: while streams are under way, the ledger's server is down or read-only.
// Their usage is booked once it is back.
func TestStreamsWithoutRedis(t *testing.T) {
	t.Parallel()
	follow := func(s *redistest.Server, host, port string) {
		admin := redis.NewClient(&redis.Options{Addr: s.Addr})
		defer admin.Close()
		must(t, admin.ReplicaOf(t.Context(), host, port).Err())
	}
	for name, c := range map[string]struct{ end, back func(*redistest.Server) }{
		"gone": {func(s *redistest.Server) { s.Kill() },
			func(s *redistest.Server) { s.Restart(t) }},
		"read-only": {func(s *redistest.Server) { follow(s, "127.0.0.1", "1") },
			func(s *redistest.Server) { follow(s, "NO", "ONE") }},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redistest.Options{AOF: true})
			l, err := ledger.Open(t.Context(), server.URL())
			must(t, err)
			t.Cleanup(func() { l.Close() })
			m := meteredOn(t, l, nil, quiet)
			m.openai.standin.Pace = 20 * time.Millisecond
			var begun, all sync.WaitGroup
			for i := range 20 {
				begun.Add(1)
				all.Go(func() {
					m.stream(t, chatPath, chat(i, 30), func(first *bufio.Reader) bool {
						first.ReadString('\n')
						begun.Done()
						return true
					})
				})
			}
			begun.Wait()
			c.end(server)
			all.Wait() // the callers get their answers even without the ledger
			if a := m.ask(t, chatPath, chat(99, 30)); a.status != http.StatusServiceUnavailable {
				t.Errorf("got status %d for a call without a ledger", a.status)
			}
			c.back(server)
			m.expectBilled(t, m.openai)
		})
	}
}
