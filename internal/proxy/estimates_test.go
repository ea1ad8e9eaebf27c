package proxy_test

import (
	"io"
	"strings"
	"testing"
	"time"
)

// TestEstimatesByModel checks that calls to one model teach nothing about another one, neither in
// the process that made them nor in one that reads them from the ledger.
func TestEstimatesByModel(t *testing.T) {
	t.Parallel()
	l := onFile(t)
	m := meteredOn(t, l, nil, quiet)
	for i := range 25 {
		resp, err := m.post(t.Context(), "/openai/v1/chat/completions", chat(i, 5))
		must(t, err)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	m.agree(t, "openai")
	slow := func(m *metered) { m.standins["openai"].Pace = 20 * time.Millisecond }
	m.standins["openai"].Pace = 20 * time.Millisecond
	again := meteredOn(t, l, nil, quiet, slow)
	for name, m := range map[string]*metered{"the same": m, "another": again} {
		for _, c := range []struct {
			change, to string
			learned    bool
		}{
			{"gpt-4.1", "gpt-4.1", true}, {"gpt-4.1", "o1-pro", false},
			{`"stream":true`, `"stream":true,"service_tier":"flex"`, false},
		} {
			body := strings.Replace(chat(99, 5), c.change, c.to, 1)
			resp, err := m.post(t.Context(), "/openai/v1/chat/completions", body)
			must(t, err)
			holds, err := l.Reservations(t.Context(), "openai", "money")
			must(t, err)
			if len(holds) != 1 || (holds[0].Left < holds[0].Most/2) != c.learned {
				t.Errorf("%s process, %s: held %+v", name, c.to, holds)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			m.settled(t)
		}
	}
}
