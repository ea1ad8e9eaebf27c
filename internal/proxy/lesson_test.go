package proxy_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/meter"
)

// TestLearned: once enough calls are known, also from the ledger's entries, the estimate is what
// most of them used.
func TestLearned(t *testing.T) {
	t.Parallel()
	l := onFile(t)
	m := meteredOn(t, l, nil, quiet)
	for i := range 25 {
		resp, err := m.post(t.Context(), "/anthropic/v1/messages", message(i, 20))
		must(t, err)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	m.agree(t, "anthropic")
	again := meteredOn(t, l, nil, quiet, func(m *metered) {
		m.standins["anthropic"].Pace = 20 * time.Millisecond
	})
	for policy, want := range map[string]int64{"learned": 20, "worst": 400} {
		estimates, err := meter.ParseEstimates([]string{policy}, nil)
		must(t, err)
		again.gate("anthropic").Estimates = estimates
		resp, err := again.post(t.Context(), "/anthropic/v1/messages", message(99, 20))
		must(t, err)
		holds, err := l.Reservations(t.Context(), "anthropic", "output/other")
		must(t, err)
		if len(holds) != 1 || holds[0].Left != want || holds[0].Most != 400 {
			t.Errorf("%s: held %+v, want %d of 400", policy, holds, want)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		again.settled(t)
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
