package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestUpstreamThatStops: if an upstream stops in the middle of a response and keeps the connection
// open, the proxy waits for Limits.Thinking. The hold stays and lapses into a charge.
func TestUpstreamThatStops(t *testing.T) {
	t.Parallel()
	m := openMetered(t, answering(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[]}\n\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}), func(m *metered) {
		m.openai.Drain.Time = 100 * time.Millisecond
		m.proxy.Limits.Silence, m.proxy.Limits.Thinking = time.Millisecond, 500*time.Millisecond
	})
	resp, err := m.post(t.Context(), chatPath, chat(1, 30))
	must(t, err)
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err == nil || !strings.Contains(string(text), "choices") {
		t.Errorf("the caller reads %q, %v", text, err)
	}
	m.awaitSettled(t)
	holds, err := m.ledger.Reservations(t.Context(), "openai", "tokens/gpt-4.1")
	must(t, err)
	if len(holds) != 1 || holds[0].Lapse != quota.LapseCharge ||
		max(holds[0].Left, holds[0].Most) < 400 {
		t.Errorf("held: %+v", holds)
	}
	if !strings.Contains(m.log.String(), "until they lapse") {
		t.Error(&m.log)
	}
}

// TestPackedAnswers: the proxy requests an encoding that it can read, whatever the caller accepts.
// If the response has another encoding anyway, the caller gets it unchanged. The proxy then books
// the most that the call can use, and logs why.
func TestPackedAnswers(t *testing.T) {
	for _, encoding := range []string{"br", "zstd", "deflate"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			const body = "\x1b\x56\x00\x80 packed"
			m := openMetered(t, answering(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Encoding", encoding)
				io.WriteString(w, body)
			}))
			for range 2 {
				a := m.ask(t, chatPath, chat(1, 3), "Accept-Encoding", "br, zstd, deflate")
				how := strings.Join((<-m.openai.asked).Header["Accept-Encoding"], ", ")
				if how != "gzip" || a.body != body || a.header.Get("Content-Encoding") != encoding {
					t.Errorf("asked for %s, answered %q of %s", how, a.body, a.header)
				}
			}
			m.awaitSettled(t)
			if booked, held := m.openai.booked(t); booked["tokens/gpt-4.1"] < 2*400 || held != 0 {
				t.Errorf("booked %v, %d held", booked, held)
			}
			if n := strings.Count(m.log.String(), "a body that can be read"); n != 1 {
				t.Errorf("logged %d times: %s", n, &m.log)
			}
		})
	}
}

// TestDroppedHeaders: the upstream's credential replaces the caller's in every place where the
// upstream accepts one. If only the response reports the usage, the request has no Range.
func TestDroppedHeaders(t *testing.T) {
	t.Parallel()
	m := openMetered(t)
	names := []string{"Authorization", "X-Api-Key", "OpenAI-Organization", "Range", "If-Range"}
	for _, name := range names {
		a := m.ask(t, chatPath, chat(1, 3), name, "Bearer sk-mine")
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		sent := (<-m.openai.asked).Header
		if strings.Contains(fmt.Sprint(sent), "sk-mine") ||
			sent.Get("Authorization") != "Bearer "+canary {
			t.Errorf("%s: sent %v", name, sent)
		}
	}
	m.expectBilled(t, m.openai)
}
