package forecast

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// What is left of a bucket is denied to a charge that is larger, and the bucket opens again when it would fit.
func TestLargeCharges(t *testing.T) {
	now := clock(t, "2026-11-21 20:00:00")
	b := Bucket{Name: "default", At: now, Limits: []quota.Limit{limit(t, 9500, "24h")}, Reset: window(t, "day"),
		Entries: flow(now.Add(-20*time.Hour), now, 4*time.Hour, 1600)} // the first leaves at 04:00
	f := Of(b)
	if opens := now.Add(8 * time.Hour); f.Remaining != 1500 || f.Verdict != RunsDry || !f.DryAt.Before(opens) || !f.OpensAt.Equal(opens) {
		t.Errorf("%d left: %s, opens %v", f.Remaining, f.Text(), f.OpensAt)
	}
}

// Charges come in the sizes seen, each in its turn, on every day from another one on.
func TestCharges(t *testing.T) {
	h := habit{sizes: []float64{10, 20, 30}}
	c := h.begin(4, 0.5)
	if c.size != 20 || c.wanted != 10 {
		t.Errorf("%+v", c)
	}
	c.wanted = 65
	for _, want := range []float64{30, 10, 20} {
		if c.next(); c.size != want {
			t.Errorf("%+v, want %v", c, want)
		}
	}
	if c.wanted != 5 {
		t.Errorf("%v wanted since, want 5", c.wanted)
	}
}
