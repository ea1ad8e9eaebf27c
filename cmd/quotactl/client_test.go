package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"quotabudget/client"
	"quotabudget/internal/report"
)

// closeNoter is a request body that notes that it was closed.
type closeNoter struct {
	io.Reader
	closed bool
}

func (c *closeNoter) Close() error {
	c.closed = true
	return nil
}

// TestClientTransport requires the units used and held after each end of a call.
func TestClientTransport(t *testing.T) {
	t.Parallel()
	s := newShell(t, "", `
credentials:
  - name: y1
    limits: [{bucket: default, units: 20, window: 24h}]
`)
	server := process(t, s.env, "serve", "--listen", "127.0.0.1:0")
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/breaks" {
			panic(http.ErrAbortHandler)
		}
	}))
	defer upstream.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	most, used := int64(4), map[string]int64{"default": 3}
	transport := &client.Transport{Client: &client.Client{URL: strings.TrimRight(server, "/")},
		Most: func(*http.Request) client.Cost { return client.Cost{Units: most} },
		Used: func(*http.Response) map[string]int64 { return used }}
	for _, c := range []struct {
		name, url  string
		most       int64
		used       map[string]int64
		fails      bool
		sum, holds int64 // used and held afterwards
	}{
		{"answered", upstream.URL, 4, map[string]int64{"default": 3}, false, 3, 0},
		{"free", upstream.URL, 0, nil, false, 3, 0},
		{"usage unknown", upstream.URL, 4, nil, false, 3, 4},
		{"never sent", closed.URL, 4, nil, true, 3, 4},
		{"broken off", upstream.URL + "/breaks", 4, nil, true, 3, 8},
		{"denied", upstream.URL, 10, nil, true, 3, 8},
	} {
		most, used = c.most, c.used
		body := &closeNoter{Reader: strings.NewReader("a")}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, body)
		must(t, err)
		response, err := transport.RoundTrip(r)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, denied := errors.AsType[*client.DeniedError](err); denied != (c.name == "denied") {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			response.Body.Close()
		}
		if !body.closed {
			t.Errorf("%s: the body of the request stays open", c.name)
		}
		_, out := s.run("status", "-o", "json")
		var status report.Status
		must(t, json.Unmarshal([]byte(out), &status))
		b := status.Credentials[0].Buckets[0]
		if b.Limits[0].Used != c.sum || b.Held != c.holds {
			t.Errorf("%s: used %d, held %d, want %d and %d", c.name, b.Limits[0].Used, b.Held, c.sum,
				c.holds)
		}
	}
}
