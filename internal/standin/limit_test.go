package standin

import (
	"strings"
	"testing"
	"time"
)

// TestRate takes costs from a limit at several times; + means admitted, - refused.
func TestRate(t *testing.T) {
	for _, test := range []struct {
		limit   string
		refills bool
		zone    string
		from    string
		steps   string // the time since the previous step, and the cost
		want    string
	}{
		{"10/10s", true, "", "2026-03-04T12:00:00Z", "0s:10 0s:1 1s:1 500ms:1 500ms:1 20s:10 0s:1",
			"+-+-++-"},
		{"10/10s", false, "", "2026-03-04T12:00:00Z", "0s:10 9.999s:1 1ms:10 10s:11", "+-+-"},
		{"10/10s", false, "", "2026-03-04T12:00:00.7Z", "0s:10 9.2s:1 100ms:10", "+-+"},
		{"10/minute", false, "", "2026-03-04T12:00:59Z", "0s:10 1s:10 59s:1 1s:1", "++-+"},
		// a clock that is set back frees no units
		{"10/minute", false, "", "2026-03-04T12:00:59Z", "0s:10 1s:10 -1s:1", "++-"},
		{"10/day", false, "America/Los_Angeles", "2026-03-08T07:59:59Z",
			"0s:10 1s:10 22h:1 59m59s:1 1s:10", "++--+"}, // 23 hours: the clocks go forward
		{"10/day", false, "America/Los_Angeles", "2026-11-01T06:59:59Z",
			"0s:10 1s:10 24h:1 59m59s:1 1s:10", "++--+"}, // 25 hours
		{"10/week", false, "", "2026-03-08T23:59:59Z", "0s:10 1s:10 167h:1 1h:1", "++-+"},
		{"10/month", false, "", "2026-02-28T23:59:59Z", "0s:10 1s:10 743h:1 1h:1", "++-+"},
		{"0/1m", true, "", "2026-03-04T12:00:00Z", "0s:0 1h:1", "+-"},
		{"2", false, "", "2026-03-04T12:00:00Z", "0s:1 0s:1 1h:1", "++-"},
	} {
		l, err := ParseLimit(test.limit)
		must(t, err)
		zone, err := time.LoadLocation(test.zone)
		must(t, err)
		now, err := time.Parse(time.RFC3339, test.from)
		must(t, err)
		m := meter{map[string][]Limit{"b": {l}}, test.refills, map[string][]*rate{},
			map[string]int64{}}
		got := ""
		for _, step := range strings.Fields(test.steps) {
			after, text, _ := strings.Cut(step, ":")
			d, err := time.ParseDuration(after)
			must(t, err)
			now = now.Add(d)
			units := int64(0)
			for _, digit := range text {
				units = units*10 + int64(digit-'0')
			}
			if denied := m.admit(now.In(zone), []cost{one("b", units)}); denied == nil {
				got += "+"
			} else {
				got += "-"
			}
		}
		if got != test.want {
			t.Errorf("%s from %s: %s: %s, want %s", test.limit, test.from, test.steps, got,
				test.want)
		}
	}
}

// TestLimitsAsText: the text of a limit parses to the same limit.
func TestLimitsAsText(t *testing.T) {
	for _, text := range strings.Fields("5/1m 5/1h 5/1h30m 5/90ms 5/1h0m1s 5/month 5") {
		if l, err := ParseLimit(text); err != nil || l.String() != text {
			t.Errorf("%s: %s %v", text, l, err)
		}
	}
}
