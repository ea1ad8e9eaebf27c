package proxy_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/meter"
	"quotabudget/internal/meter/metertest"
)

// TestLearned: once enough calls are recorded, possibly only in the ledger, the estimate is what
// most of them used. Calls to one model teach nothing about another one.
func TestLearned(t *testing.T) {
	t.Parallel()
	flex := strings.NewReplacer(`"stream":true`, `"stream":true,"service_tier":"flex"`)
	other := strings.NewReplacer("gpt-4.1", "o1-pro")
	type call struct {
		policy, body string
		learned      bool
	}
	for _, c := range []struct {
		of           func(*metered) *upstream
		path, bucket string
		body         func(n, output int) string
		calls        []call
	}{
		{func(m *metered) *upstream { return m.anthropic }, messagePath, "output/other", message,
			[]call{{"learned", message(99, 20), true}, {"worst", message(99, 20), false}}},
		{func(m *metered) *upstream { return m.openai }, chatPath, "money", chat,
			[]call{{"learned", chat(99, 5), true}, {"learned", other.Replace(chat(99, 5)), false},
				{"learned", flex.Replace(chat(99, 5)), false}}},
	} {
		l := metertest.File(t)
		m := meteredOn(t, l, nil, quiet)
		for i := range 25 {
			m.ask(t, c.path, c.body(i, 20))
		}
		m.expectBilled(t, c.of(m))
		for name, m := range map[string]*metered{"the same": m,
			"another": meteredOn(t, l, nil, quiet)} {
			u := c.of(m)
			u.standin.Pace = 20 * time.Millisecond
			for _, call := range c.calls {
				estimates, err := meter.ParseEstimates([]string{call.policy}, nil)
				must(t, err)
				u.Estimates = estimates
				resp, err := m.post(t.Context(), c.path, call.body)
				must(t, err)
				holds, err := l.Reservations(t.Context(), u.Name, c.bucket)
				must(t, err)
				if len(holds) != 1 || (holds[0].Left < holds[0].Most/2) != call.learned ||
					u == m.anthropic && (call.learned != (holds[0].Left == 20) ||
						holds[0].Most != 400) {
					t.Errorf("%s process, %s %s: held %+v", name, call.policy, call.body, holds)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				m.awaitSettled(t)
			}
		}
	}
}

// TestParseEstimates: unknown policies are refused.
func TestParseEstimates(t *testing.T) {
	known := func(method, bucket string) error {
		if method != "a.b" {
			return errors.New("no such method")
		}
		return nil
	}
	all, err := meter.ParseEstimates(strings.Fields("learned a.b=worst a.b/tokens=20"), known)
	if err != nil || !all["a.b"].Worst || all["a.b/tokens"].Most != 20 {
		t.Errorf("%v %v", all, err)
	}
	for _, bad := range strings.Fields("often 0 -1 a.b=x c.d=worst 99999999999999999999") {
		if _, err := meter.ParseEstimates([]string{bad}, known); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
