package meter_test

import (
	"strings"
	"testing"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// rare is a list whose calls hold words only if they request them, but may use them anyway.
const rare = `hosts: [api.example.test]
credential: bearer
sources: {page: {status: official, date: 2026-11, text: a page}}
buckets: {requests: {unit: requests}, words: {unit: units}, letters: {unit: units}}
methods:
  x.ask:
    route: POST /v1/chat/completions
    source: page
    take: {requests: 1}
    hold: {words: 'body.words ?? 0', letters: 'body.letters ?? 0'}
    settle: {words: usage.completion_tokens}
`

// TestHoldOfNothing: a bucket from which a call holds nothing may be empty. Units that the call
// uses from it anyway are booked.
func TestHoldOfNothing(t *testing.T) {
	empty := quota.Limit{Bucket: "letters", Units: 0, Window: quota.Sliding(quota.MaxWindow)}
	m := openMetered(t, "openai")
	list, err := costs.ParseList("costs.yaml", []byte(rare), nil)
	must(t, err)
	m.gate(t, list.Usual(), m.Budget.Ledger, []quota.Limit{empty, limitOn("words", 1)})
	for i, output := range []int{30, 5} {
		m.expectStatus(t, 200, m.chat(t.Context(), output, false))
		m.expectUnits(t, "words", 0, []int64{30, 35}[i])
	}
	m.expectUnits(t, "requests", 0, 2)
	// a call that draws on a reservation books all of it in its own way, once
	drawing, _ := m.drawing(t, "requests", 5)
	m.expectStatus(t, 200, m.chat(drawing, 7, false))
	m.expectUnits(t, "words", 0, 42)
	m.expectUnits(t, "requests", 4, 3)
	if strings.Contains(m.log.String(), "cannot book") {
		t.Error(m.log)
	}
	r := m.post(t.Context(), "/v1/chat/completions", `{"model":"a","letters":1}`)
	if _, _, err := m.send(r); err == nil {
		t.Error("a letter passes")
	}
}
