package standin

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestFaults checks the response and the bill of a request with each fault.
func TestFaults(t *testing.T) {
	const full = `{"input/claude-x":25,"output/claude-x":10,"requests/claude-x":1}`
	const request = `{"requests/claude-x":1}`
	remaining := "Anthropic-Ratelimit-Output-Tokens-Remaining"
	for _, test := range []struct {
		kind   string
		status int // 0: no response
		units  string
		header string // of remaining
		holds  string
	}{
		{"401", 401, "{}", "", "authentication_error"},
		{"429", 429, request, "", "rate_limit_error"},
		{"spend", 429, request, "", "enforced_spend_limit_reached"},
		{"500", 500, request, "", "api_error"},
		{"503", 503, request, "", "api_error"},
		{"529", 529, request, "", "overloaded_error"},
		{"html", 502, request, "", "<!DOCTYPE html>"},
		{"drop", 0, full, "", "EOF"},
		{"cut", 200, full, "9900", `"content"`},
		{"truncated", 200, full, "9900", `"content"`},
		{"no-usage", 200, full, "9900", `"stop_reason":"end_turn"`},
		{"no-headers", 200, full, "", `"usage"`},
		{"minus-one", 200, full, "-1", `"usage"`},
		{"nonsense", 200, full, "soon", `"usage"`},
		{"stale", 200, full, "10000", `"usage"`},
	} {
		s, url := play(t, "anthropic")
		s.Faults = []string{test.kind + "@1"}
		a := get(t, url, message)
		if a.status != test.status || s.billed() != test.units ||
			test.status == 200 && a.header.Get(remaining) != test.header ||
			!strings.Contains(a.body, test.holds) {
			t.Errorf("%s: %d %s %q\n%s", test.kind, a.status, s.billed(), a.header.Get(remaining),
				a.body)
		}
		if damaged := test.kind == "cut"; (a.err != nil) != damaged {
			t.Errorf("%s: %v", test.kind, a.err)
		}
		if strings.Contains(a.body, `"usage"`) != (test.status == 200 && test.kind != "no-usage" &&
			test.kind != "cut" && test.kind != "truncated") {
			t.Errorf("%s: %s", test.kind, a.body)
		}
		if next := get(t, url, message); next.status != 200 {
			t.Errorf("%s: the next is %d", test.kind, next.status)
		}
	}
}

// TestFaultsOfStreams: a stream that ends in the middle, or never, is billed in full.
func TestFaultsOfStreams(t *testing.T) {
	for _, test := range []struct {
		kind    string
		damaged bool // the client sees an error
	}{{"cut", true}, {"truncated", false}, {"no-usage", false}} {
		s, url := play(t, "openai")
		s.Faults = []string{test.kind}
		a := get(t, url, strings.TrimSuffix(streamed(chat), "}")+
			`,"stream_options":{"include_usage":true}}`)
		if (a.err != nil) != test.damaged || strings.Contains(a.body, "total_tokens") ||
			strings.Contains(a.body, "[DONE]") != (test.kind == "no-usage") ||
			s.Counts().Units["tokens/gpt-x"] != 48 {
			t.Errorf("%s: %v %s\n%s", test.kind, a.err, s.billed(), a.body)
		}
	}
}

// TestEndless: an endless response ends when the client disconnects.
func TestEndless(t *testing.T) {
	for _, request := range []string{message, streamed(message)} {
		s, url := play(t, "anthropic")
		s.Faults = []string{"endless"}
		ctx, cancel := context.WithCancel(t.Context())
		resp := ask(ctx, t, url, request)
		if n, err := io.CopyN(io.Discard, resp.Body, 500); err != nil {
			t.Errorf("ended after %d bytes: %v", n, err)
		}
		cancel()
		resp.Body.Close()
		for s.Counts().Open > 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// TestBomb: a small response decompresses to a large one.
func TestBomb(t *testing.T) {
	s, url := play(t, "generic")
	s.Faults = []string{"bomb"}
	a := get(t, url, "GET /", "Accept-Encoding: gzip")
	z, err := gzip.NewReader(strings.NewReader(a.body))
	must(t, err)
	n, err := io.Copy(io.Discard, z)
	if packed := len(a.body); packed > 1<<18 || n != 64<<20 || err != nil {
		t.Errorf("%d bytes of %d: %v", packed, n, err)
	}
}

// TestPacked: responses are compressed for clients that accept gzip.
func TestPacked(t *testing.T) {
	_, url := play(t, "openai")
	a := get(t, url, chat, "Accept-Encoding: gzip, deflate")
	if a.header.Get("Content-Encoding") != "gzip" || json.Valid([]byte(a.body)) {
		t.Errorf("%v", a.header)
	}
	if a := get(t, url, streamed(chat), "Accept-Encoding: gzip"); a.header.Get(
		"Content-Encoding") != "" {
		t.Error("a stream is packed")
	}
}

// TestKeys: only the account's credentials are accepted, and refused requests are not billed.
func TestKeys(t *testing.T) {
	for _, name := range Names() {
		s, url := play(t, name)
		s.Keys = []string{"mine"}
		for _, header := range []string{"k", "mine"} {
			a := get(t, url, "GET /nothing", "Authorization: Bearer "+header, "X-Api-Key: "+header,
				"X-Shopify-Access-Token: "+header, "X-Goog-Api-Key: "+header, "Api-Key: "+header)
			refused := a.status == http.StatusUnauthorized || strings.Contains(a.body, "invalid_auth")
			if refused != (header == "k") {
				t.Errorf("%s: %s: %d", name, header, a.status)
			}
			if header == "k" && s.billed() != "{}" {
				t.Errorf("%s: billed %s", name, s.billed())
			}
		}
	}
	s, url := play(t, "openai")
	s.AdminKey = "admin"
	for key, want := range map[string]int{"k": 401, "admin": 400} { // without a period
		a := get(t, url, "GET /v1/organization/costs", "Authorization: Bearer "+key)
		if a.status != want {
			t.Errorf("the key %s for a bill: %d", key, a.status)
		}
	}
}

func TestParsersRefuse(t *testing.T) {
	for _, text := range strings.Fields("x @1 503@ 503@x 503@3-x 503/0 503*-1 503@1@") {
		if _, err := parseFaults("generic", []string{text}); err == nil {
			t.Errorf("fault %q was read", text)
		}
	}
	for _, text := range strings.Fields("output =5/1m output=x/1m output=-1/1m " +
		"output=5/fortnight output=5/0s output=5/-1m output=99999999999999999/1m") {
		if _, err := ParseLimits(text); err == nil {
			t.Errorf("limit %q was read", text)
		}
	}
	for _, text := range strings.Fields("output =5 output=x output=-1 output=1e10 output=NaN") {
		if _, err := ParsePrices(text); err == nil {
			t.Errorf("price %q was read", text)
		}
	}
	if _, err := New("nobody"); err == nil {
		t.Error("there is a stand-in for nobody")
	}
	s, err := New("shopify")
	must(t, err)
	s.Limits, s.Prices = map[string][]Limit{"tokens": nil}, map[string]float64{"output": 1}
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "points") {
		t.Errorf("%v", err)
	}
}

// TestSettings: settings change a running stand-in, unless one of them is invalid.
func TestSettings(t *testing.T) {
	s, url := play(t, "generic")
	get(t, url, "GET /")
	for _, wrong := range []string{`{`, `{"color":1}`, `{"advance":"soon"}`, `{"advance":"-1h"}`,
		`{"faults":["x"],"advance":"1h"}`, `{"limits":{"nothing":["1/1m"]},"faults":["503"]}`,
		`{"limits":{"requests":["1/x"]}}`, `{"prices":{"output":1}}`} {
		if a := get(t, url, "POST /standin/settings "+wrong); a.status != 400 || s.ahead != 0 ||
			len(s.faults) != 0 {
			t.Errorf("%s: %d %s", wrong, a.status, a.body)
		}
	}
	get(t, url, `POST /standin/settings {"limits":{"requests":["1/1m"]},"faults":["503@3"]}`)
	var statuses [3]int
	for i := range statuses {
		statuses[i] = get(t, url, "GET /").status
	}
	if statuses != [3]int{200, 503, 429} {
		t.Error(statuses)
	}
	if a := get(t, url, "GET /standin/nothing"); a.status != 404 {
		t.Errorf("%d", a.status)
	}
	a := get(t, url, "GET /standin/counts")
	var c Counts
	must(t, json.Unmarshal([]byte(a.body), &c))
	if c.Requests != 4 || c.Denied != 1 || c.Failed != 1 {
		t.Errorf("%+v", c)
	}
}

// TestLargeBody: the stand-in stops reading an endless body.
func TestLargeBody(t *testing.T) {
	s, url := play(t, "openai")
	a := get(t, url, "POST /v1/chat/completions "+strings.Repeat("a", maxBody+1))
	if a.status != 413 && a.status != 0 || len(s.Counts().Units) > 0 {
		t.Errorf("%d %s", a.status, s.billed())
	}
}
