package meter_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
)

// a chat that used 17 tokens
const chatted = `{"usage":{"prompt_tokens":8,"completion_tokens":9,"total_tokens":17},"error":{}}`

// reply sets the upstream's response; headers alternates names and values.
func (m *metered) reply(status int, body string, headers ...string) {
	m.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
}

// standing lists used, and by others of that, of each limit: "1m 17 0, day 17 0".
func (m *metered) standing(t testing.TB) string {
	t.Helper()
	m.settled(t)
	usage, err := m.Budget.Usage(t.Context())
	must(t, err)
	var all []string
	for _, b := range usage.Buckets {
		for _, l := range b.Limits {
			all = append(all, fmt.Sprintf("%s %d %d", l.Limit.Window.Text(), l.Used, l.Others))
		}
	}
	return strings.Join(all, ", ")
}

// TestHeaderCorrectsOneLimit checks that what a header says of the minute counts in the minute, and
// that the state of an account with a lower limit is no use of the higher one in force. What the
// call could have taken and did not, 1,332 tokens, may still be counted by the header.
func TestHeaderCorrectsOneLimit(t *testing.T) {
	const limitOf, left = "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens"
	day := quota.Limit{Bucket: "tokens", Units: 500_000,
		Window: quota.Window{Calendar: "day", Zone: time.UTC}}
	clock := quota.Limit{Bucket: "tokens", Units: 200_000,
		Window: quota.Window{Calendar: "minute", Zone: time.UTC}}
	for _, c := range []struct {
		minute      quota.Limit
		limit, left string // in the headers
		want        string
		lower       bool // the account's limit
	}{
		{limitOn("tokens", 200_000), "200000", "150000", "1m 48668 48651, day 17 0", false},
		{limitOn("tokens", 200_000), "", "150000", "1m 48668 48651, day 17 0", false},
		{limitOn("tokens", 200_000), "900000", "150000", "1m 48668 48651, day 17 0", false},
		{limitOn("tokens", 200_000), "30000", "29983", "1m 17 0, day 17 0", true},
		{limitOn("tokens", 200_000), "30000", "20000", "1m 8668 8651, day 17 0", true},
		{limitOn("tokens", 200_000), "-1", "-1", "1m 17 0, day 17 0", false},
		{limitOn("tokens", 200_000), "0", "199999", "1m 17 0, day 17 0", false},
		{clock, "30000", "20000", "minute 8668 8651, day 17 0", true},
	} {
		ledger := metertest.File(t)
		now := time.Now().Truncate(time.Minute) // in which no window ends
		ledger.Now = func() time.Time { return now }
		m := onLedger(t, "openai", ledger, c.minute, day)
		m.reply(200, chatted, limitOf, c.limit, left, c.left)
		m.expectStatus(t, 200, m.chat(t.Context(), 5, false))
		if got := m.standing(t); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.left, c.limit, got, c.want)
		}
		m.expectStatus(t, 200, m.chat(t.Context(), 5, false))
		text := "the account allows 30,000 tokens in " + c.minute.Window.Text() +
			", the limit in force is 200,000 tokens"
		if n := strings.Count(m.log.String(), text); n > 1 || (n == 1) != c.lower {
			t.Errorf("%s of %s: reported %d times: %s", c.left, c.limit, n, m.log)
		}
	}
}

// TestRefusedCallLeavesNoRoom checks that a call that the upstream refuses, with nothing left, does
// not leave what was set aside for it to the next one.
func TestRefusedCallLeavesNoRoom(t *testing.T) {
	m := openMetered(t, "openai", limitOn("tokens", 20_000))
	m.reply(429, chatted, "X-Ratelimit-Limit-Tokens", "20000",
		"X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "40s")
	m.expectStatus(t, 429, m.chat(t.Context(), 5, false))
	if got := m.standing(t); got != "1m 20000 20000" {
		t.Errorf("%s", got)
	}
	_, _, err := m.send(m.chat(t.Context(), 5, false))
	refused(t, err, quota.ErrExhausted)
}
