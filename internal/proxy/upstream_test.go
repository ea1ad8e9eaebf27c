package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/proxy"
	"quotabudget/internal/quota"
)

// claudeKey is the credential of the second upstream.
const claudeKey = "canary-a77c0e"

const (
	messages = "/anthropic/v1/messages"
	question = `{"model":"claude-sonnet-4-5","max_tokens":%d,"messages":` +
		`[{"role":"user","content":"hello [[output:%d]]"}]}`
)

// withUpstream adds a second upstream to the proxy and stores it in u. Without limits, it has the
// default limits of its price list.
func withUpstream(t testing.TB, u **upstream, name string, limits ...quota.Limit) func(*env) {
	t.Helper()
	return func(s *env) {
		if len(limits) == 0 {
			table, err := costs.Shipped().Upstream(name)
			must(t, err)
			limits = table.DefaultLimits()
		}
		*u = start(t, name, claudeKey, s.Ledger, limits, s.Transport.Log)
		s.proxy.Upstreams = append(s.proxy.Upstreams, (*u).Upstream)
	}
}

// withClaude opens an env with anthropic as the second upstream.
func withClaude(t testing.TB, change ...func(*env)) (s *env, c *upstream) {
	t.Helper()
	hour := quota.Limit{Bucket: "output", Units: 1000, Window: quota.Sliding(time.Hour)}
	s = open(t, units(10), append(change, withUpstream(t, &c, "anthropic", hour))...)
	return s, c
}

// TestTwoUpstreams: each upstream is served under its name or host, with its own key and price
// list, whatever key the program sends. The default one stays at its own paths.
func TestTwoUpstreams(t *testing.T) {
	s, c := withClaude(t)
	ask := fmt.Sprintf(question, 100, 20)
	for _, call := range []struct {
		path   string
		header []string
	}{
		{messages, []string{"X-Api-Key", "sk-own"}},
		{messages, []string{"Authorization", "Bearer sk-own"}},
		{messages, []string{"Authorization", "Bearer sk-own", "X-Api-Key", "sk-own"}},
		{"/v1/messages", []string{"Host", "api.anthropic.com"}},
		{"/v1/messages", []string{"Host", "API.anthropic.com:443", "X-Api-Key", "sk-own"}},
	} {
		header := append(call.header, "Content-Type", "application/json", "Anthropic-Version",
			"2023-06-01")
		a := s.do(t, http.MethodPost, call.path, ask, header...)
		if a.status != http.StatusOK || !strings.Contains(a.body, `"output_tokens":20`) {
			t.Errorf("%s %v: %d %s", call.path, call.header, a.status, a.body)
		}
		asked := <-c.asked
		if asked.URL.Path != "/v1/messages" || asked.Header.Get("X-Api-Key") != claudeKey ||
			asked.Header.Get("Authorization") != "" {
			t.Errorf("%s %v: the upstream got %s %v", call.path, call.header, asked.URL,
				asked.Header)
		}
	}
	if a := s.get(t, chart); a.status != http.StatusOK {
		t.Errorf("%s: %d %s", chart, a.status, a.body)
	}
	s.Counted(t, 1, 1)
	if n := c.standin.Counts(); n.Requests != 5 || n.Units["output/sonnet-4"] != 100 ||
		c.used(t, "output/sonnet-4") != 100 || c.used(t, "requests/sonnet-4") != 5 {
		t.Errorf("the stand-in counted %+v, the ledger has %d", n, c.used(t, "output/sonnet-4"))
	}
	if log := s.Log.String(); strings.Contains(log, "sk-own") ||
		strings.Contains(log, claudeKey) || !strings.Contains(log, "path="+messages) {
		t.Errorf("log: %s", log)
	}
}

// TestBodies: a method with several verbs takes bodies, and forms if its list says so.
func TestBodies(t *testing.T) {
	const form, text = "application/x-www-form-urlencoded", "application/json"
	for _, c := range []struct {
		upstream, verb, path, kind, body string
		want                             int
	}{
		{"notion", "POST", "/notion/v1/search", text, `{"query":"a"}`, 200},
		{"notion", "POST", "/notion/v1/search", form, "query=a", 400},
		{"notion", "GET", "/notion/v1/search", text, `{"query":"a"}`, 400},
		{"slack", "POST", "/slack/api/chat.postMessage", form, "channel=C1&text=a", 200},
		{"slack", "POST", "/slack/api/chat.postMessage", form, "channel=C1&channel=C2", 400},
		{"reddit", "POST", "/reddit/api/submit", form, "title=a", 200},
		{"generic", "PATCH", "/generic/a", text, `{"a":1}`, 200},
	} {
		var u *upstream
		s := open(t, units(10), withUpstream(t, &u, c.upstream))
		if a := s.do(t, c.verb, c.path, c.body, "Content-Type", c.kind); a.status != c.want {
			t.Errorf("%s %s: %d, want %d: %s", c.path, c.kind, a.status, c.want, a.body)
		}
	}
}

// TestGuardsOfEveryUpstream: what is refused of one is refused of all, and costs nothing.
func TestGuardsOfEveryUpstream(t *testing.T) {
	s, c := withClaude(t)
	for _, call := range []struct {
		verb, path, name, value string
		want                    int
	}{
		{"POST", messages, "Host", "evil.example", 403},
		{"POST", messages, "Origin", "https://evil.example", 403},
		{"POST", messages, "Sec-Fetch-Site", "cross-site", 403},
		{"POST", messages, "Content-Type", "application/x-www-form-urlencoded", 400},
		{"POST", messages, "Upgrade", "websocket", 400},
		{"POST", messages + "?userProject=other", "Accept", "*/*", 400},
		{"POST", "/anthropic/v1/nothing", "Accept", "*/*", 404},
		{"POST", "/anthropic/v1/..%2fmessages", "Accept", "*/*", 400},
		{"POST", "/anthropic", "Accept", "*/*", 404},
		{"DELETE", messages, "Accept", "*/*", 405},
		{"POST", "/openai/v1/responses", "Accept", "*/*", 404},
	} {
		a := s.do(t, call.verb, call.path, fmt.Sprintf(question, 100, 20), call.name, call.value)
		if a.status != call.want {
			t.Errorf("%s %s: %d, want %d: %s", call.path, call.name, a.status, call.want, a.body)
		}
	}
	s.proxy.Unserved = []string{"openai"}
	a := s.do(t, http.MethodPost, "/openai/v1/responses", "{}")
	if said := a.refused(t, 404); !strings.Contains(said.Detail, "no key for openai") {
		t.Errorf("%s", a.body)
	}
	s.Counted(t, 0, 0)
	if n := c.standin.Counts(); n.Requests != 0 || c.used(t, "requests/sonnet-4") != 0 {
		t.Errorf("the stand-in counted %+v", n)
	}
}

// TestRefusalOfAnotherUpstream: a denial has the form that its clients show, with when it would
// fit; so has a request that cannot be priced.
func TestRefusalOfAnotherUpstream(t *testing.T) {
	s, _ := withClaude(t)
	for _, call := range []struct {
		body       string
		status     int
		kind, code string
	}{
		{fmt.Sprintf(question, 900, 800), 200, "", ""},
		{fmt.Sprintf(question, 900, 800), 429, "rate_limit_error", "quota_exceeded"},
		{fmt.Sprintf(question, 9000, 800), 422, "invalid_request_error", "cost_exceeds_limit"},
		{`{"model":`, 400, "invalid_request_error", "unpriceable"},
	} {
		a := s.do(t, http.MethodPost, messages, call.body, "Anthropic-Version", "2023-06-01")
		var said struct {
			Error struct{ Message, Type, Code string }
		}
		if err := json.Unmarshal([]byte(a.body), &struct {
			Error *struct{ Message, Type, Code string }
		}{&said.Error}); a.status != call.status || err != nil || said.Error.Type != call.kind ||
			said.Error.Code != call.code {
			t.Errorf("%d %s: %v", a.status, a.body, err)
		}
		if a.status == http.StatusTooManyRequests && (a.header.Get("Retry-After") == "" ||
			!strings.Contains(said.Error.Message, "output") ||
			!strings.Contains(a.body, `"retry_at":"20`)) {
			t.Errorf("%v %s", a.header, a.body)
		}
	}
}

// TestCallersOfAnotherUpstream: a token of the proxy comes where a program would put the key, and
// does not reach the upstream.
func TestCallersOfAnotherUpstream(t *testing.T) {
	s, c := withClaude(t, withCallers(t))
	for _, header := range [][]string{{"X-Api-Key", token}, {"Authorization", "Bearer " + token},
		{"X-Quota-Token", token, "X-Api-Key", "sk-own"}} {
		a := s.do(t, http.MethodPost, messages, fmt.Sprintf(question, 50, 5),
			append(header, "Anthropic-Version", "2023-06-01")...)
		asked := <-c.asked
		if a.status != http.StatusOK || asked.Header.Get("X-Api-Key") != claudeKey ||
			a.header.Get("Cache-Control") != "private, no-cache" ||
			strings.Contains(fmt.Sprint(asked.Header), token) {
			t.Errorf("%v: %d %s", header, a.status, a.body)
		}
	}
	a := s.do(t, http.MethodPost, messages, fmt.Sprintf(question, 50, 5), "X-Api-Key", "sk-own")
	if a.status != http.StatusUnauthorized || strings.Contains(s.Log.String(), token) {
		t.Errorf("without a token: %d %s", a.status, a.body)
	}
}

var streamed = `{"stream":true,` + strings.TrimPrefix(fmt.Sprintf(question, 100, 33), "{")

// streaming streams the first event of a message, and the others once the test lets it proceed.
func streaming(proceed <-chan bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"+
			"{\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n")
		w.(http.Flusher).Flush()
		<-proceed
		io.WriteString(w, "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":"+
			"{\"output_tokens\":33}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	}
}

// TestStreamPassesAsItComes: the first event reaches the caller before the upstream sends the
// second, and what the last one says is booked.
func TestStreamPassesAsItComes(t *testing.T) {
	read := make(chan bool)
	s, c := withClaude(t)
	c.answer = streaming(read)
	resp, err := s.post(t.Context(), messages, streamed)
	must(t, err)
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	first, err := body.ReadString('\n')
	close(read)
	if err != nil || first != "event: message_start\n" {
		t.Errorf("%q %v", first, err)
	}
	rest, err := io.ReadAll(body)
	must(t, err)
	if !strings.Contains(string(rest), "message_stop") {
		t.Errorf("%s", rest)
	}
	if out, in := c.used(t, "output/sonnet-4"), c.used(t, "input/sonnet-4"); out != 33 || in != 7 {
		t.Errorf("the ledger has %d and %d units, want 33 and 7", out, in)
	}
}

// TestEndSettles: when the proxy ends, the answer whose caller has left is read to its end first,
// and booked.
func TestEndSettles(t *testing.T) {
	left, ended := make(chan bool), make(chan bool)
	s, c := withClaude(t)
	c.answer = streaming(left)
	listener, err := proxy.Listen("127.0.0.1:0")
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		if err := s.proxy.Serve(ctx, listener); err != nil {
			t.Error(err)
		}
	}()
	resp, err := front{URL: "http://" + listener.Addr().String()}.post(t.Context(), messages,
		streamed)
	must(t, err)
	_, err = bufio.NewReader(resp.Body).ReadString('\n')
	must(t, err)
	resp.Body.Close()
	stop()
	close(left)
	<-ended
	if out := c.used(t, "output/sonnet-4"); out != 33 {
		t.Errorf("the ledger has %d units, want 33", out)
	}
}
