package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
)

// TestDrainBound: an answer without end is not read for ever when its caller has gone. What was
// held stays so.
func TestDrainBound(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]meter.Drain{
		"time": {Time: 50 * time.Millisecond, Bytes: 1 << 30}, "bytes": {Time: time.Hour, Bytes: 200},
	} {
		t.Run(name, func(t *testing.T) {
			m := meteredOn(t, onFile(t), nil, quiet, func(m *metered) {
				m.standins["openai"].Faults = []string{"endless"}
				m.gate("openai").Drain = drain
			})
			ctx, hangUp := context.WithCancel(t.Context())
			resp, err := m.post(ctx, "/openai/v1/chat/completions", chat(1, 30))
			must(t, err)
			bufio.NewReader(resp.Body).ReadString('\n')
			hangUp()
			m.settled(t)
			resp.Body.Close()
			booked, held := m.booked(t, "openai")
			if held < 400 || booked["tokens/gpt-4.1"] != 0 {
				t.Errorf("%d are held, %v booked", held, booked)
			}
			if units := m.metric(t, "proxy_units_total tokens/gpt-4.1"); units < 400 {
				t.Errorf("%d units are counted of a hold that lapses", units)
			}
			await(t, func() bool { return strings.Contains(m.log.String(), `"broken off"`) })
			if log := m.log.String(); !strings.Contains(log, " held.tokens/gpt-4.1=") ||
				strings.Contains(log, " units.") {
				t.Errorf("it is not said that this is held: %s", log)
			}
		})
	}
}

// TestNeverHeld: a request that cannot be priced is not sent; one for which no connection comes
// about gives back what was held; one that is too large is refused.
func TestNeverHeld(t *testing.T) {
	t.Parallel()
	m := meteredOn(t, onFile(t), nil, quiet)
	for body, want := range map[string]int{
		`{"model":`: 400, `{"model":"a","max_tokens":"5"}`: 400, `{"model":"a","model":"b"}`: 400,
		strings.Repeat(" ", meter.MaxBody+1): 413,
	} {
		resp, err := m.post(t.Context(), "/openai/v1/chat/completions", body)
		must(t, err)
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%.40q: %d %.200s", body, resp.StatusCode, text)
		}
	}
	if c := m.standins["openai"].Counts(); c.Requests != 0 {
		t.Errorf("%d requests were sent", c.Requests)
	}
	m.gate("openai").Host = "127.0.0.1:1"
	m.proxy.Upstreams[1].Endpoint = &url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: "/"}
	resp, err := m.post(t.Context(), "/openai/v1/chat/completions", chat(1, 30))
	must(t, err)
	resp.Body.Close()
	m.settled(t)
	if booked, held := m.booked(t, "openai"); resp.StatusCode != 502 || held != 0 ||
		booked["tokens/gpt-4.1"] != 0 {
		t.Errorf("%d: %d held, %v booked", resp.StatusCode, held, booked)
	}
}

// TestOvershoot: what is billed exceeds a limit by no more than the estimates in flight may be
// short of the truth. Callers that are denied get a body that their clients can read.
func TestOvershoot(t *testing.T) {
	t.Parallel()
	const limit, most = 2000, 150
	m := meteredOn(t, onFile(t), limited{"openai": {{Bucket: "tokens", Units: limit,
		Window: quota.Sliding(time.Hour)}}}, quiet, func(m *metered) {
		m.standins["openai"].Pace = time.Millisecond
		m.gate("openai").Estimates = meter.Estimates{
			"openai.chat.completions.create/tokens": {Most: most}}
	})
	var mu sync.Mutex
	var short int64 // the sum of most - held, at its largest
	stop := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			holds, err := m.ledger.Reservations(context.Background(), "openai", "tokens/gpt-4.1")
			sum := int64(0)
			for _, h := range holds {
				sum += h.Most - h.Left
			}
			mu.Lock()
			short = max(short, sum)
			mu.Unlock()
			select {
			case <-stop:
				return
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	var denied string
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			resp, err := m.post(t.Context(), "/openai/v1/chat/completions", chat(i, 399))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode == 429 {
				mu.Lock()
				defer mu.Unlock()
				denied = string(body)
				if resp.Header.Get("Retry-After") == "" ||
					resp.Header.Get("X-Should-Retry") != "false" {
					t.Errorf("headers %v", resp.Header)
				}
			}
		})
	}
	all.Wait()
	m.agree(t, "openai")
	close(stop)
	<-watched
	billed := m.standins["openai"].Counts().Units["tokens/gpt-4.1"]
	t.Logf("limit %d, billed %d, bound %d", limit, billed, limit+short)
	if billed > limit+short || billed <= limit {
		t.Errorf("%d billed, the bound is %d + %d", billed, limit, short)
	}
	var said struct {
		Error struct{ Message, Type, Code string }
	}
	if json.Unmarshal([]byte(denied), &said) != nil || said.Error.Type != "rate_limit_error" ||
		said.Error.Code != "quota_exceeded" || !strings.Contains(said.Error.Message, "tokens/gpt") {
		t.Errorf("denied with %s", denied)
	}
}

// TestUpstreamThatStops: an upstream that stops in the middle of an answer, and keeps the
// connection open, is waited for as long as a model may think, and no longer. What the call may
// take stays set aside, to lapse into a charge.
func TestUpstreamThatStops(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[]}\n\n")
		http.NewResponseController(w).Flush()
		<-end
	}))
	t.Cleanup(upstream.Close)
	t.Cleanup(func() { close(end) })
	m := meteredOn(t, onFile(t), nil, func(m *metered) {
		m.send(t, "openai", upstream.URL)
		m.gate("openai").Drain.Time = 100 * time.Millisecond
		m.proxy.Limits.Silence, m.proxy.Limits.Thinking = time.Millisecond, 500*time.Millisecond
	})
	resp, err := m.post(t.Context(), "/openai/v1/chat/completions", chat(1, 30))
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
