package proxy_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// TestMonthlyCap: a monthly cap, unlike a minute's throttle, suspends the money until the month
// ends, so the next call is not sent.
func TestMonthlyCap(t *testing.T) {
	t.Parallel()
	month, err := quota.ParseWindow("month", "UTC")
	must(t, err)
	m := meteredOn(t, onFile(t), limited{"anthropic": {{Bucket: "money", Units: 1 << 40,
		Window: month}}}, quiet, func(m *metered) {
		m.standins["anthropic"].Limits["money"] = []standin.Limit{{Units: 1, Calendar: "month"}}
	})
	for range 3 {
		resp, err := m.post(t.Context(), "/anthropic/v1/messages", message(1, 30))
		must(t, err)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	m.settled(t)
	usage, err := m.gate("anthropic").Budget.Usage(t.Context())
	must(t, err)
	_, end := month.Bounds(usage.At)
	for _, b := range usage.Buckets {
		if b.Bucket == "money" && !b.SuspendedUntil.Equal(end) {
			t.Errorf("money is suspended until %v, the month ends %v", b.SuspendedUntil, end)
		}
	}
	if c := m.standins["anthropic"].Counts(); c.Requests > 2 || c.Denied != 1 {
		t.Errorf("%+v: a call was sent while the money was suspended", c)
	}
}

// TestLearned: once enough calls are known, by the ledger's entries too, an estimate is what most
// of them took.
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

// TestParseEstimates: words that are none of the policies are refused.
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
