package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
)

// TestUpstreamThatStops: if an upstream stops in the middle of a response and keeps the connection
// open, the proxy waits for Limits.Thinking. The hold stays and lapses into a charge.
func TestUpstreamThatStops(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	stops := answering(t, "openai", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[]}\n\n")
		http.NewResponseController(w).Flush()
		<-end
	})
	m := meteredOn(t, metertest.File(t), nil, stops, func(m *metered) {
		m.gate("openai").Drain.Time = 100 * time.Millisecond
		m.proxy.Limits.Silence, m.proxy.Limits.Thinking = time.Millisecond, 500*time.Millisecond
	})
	t.Cleanup(func() { close(end) })
	resp, err := m.post(t.Context(), chatPath, chat(1, 30))
	must(t, err)
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err == nil || !strings.Contains(string(text), "choices") {
		t.Errorf("the caller reads %q, %v", text, err)
	}
	m.settled(t)
	holds, err := m.ledger.Reservations(t.Context(), "openai", "tokens/gpt-4.1")
	must(t, err)
	if len(holds) != 1 || holds[0].Lapse != quota.LapseCharge ||
		max(holds[0].Left, holds[0].Most) < 400 {
		t.Errorf("held: %+v", holds)
	}
	if !strings.Contains(m.log.String(), "until it lapses") {
		t.Error(&m.log)
	}
}
