package meter_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestBackground: what a response in the background takes is held until another call gets its
// usage, and booked once, however often that is asked for.
func TestBackground(t *testing.T) {
	m := openMetered(t, "openai", limitOn("tokens", 1_000_000), quota.Limit{Bucket: "money",
		Units: 1e9, Window: quota.Window{Calendar: "month", Zone: time.UTC}})
	m.standin.Prices = map[string]float64{"input": 0.25, "output": 2}
	begin := func() string {
		t.Helper()
		_, body, err := m.send(m.post(t.Context(), "/v1/responses",
			`{"model":"gpt-5-mini","input":"[[output:50]]","background":true}`))
		must(t, err)
		var doc struct{ ID, Status string }
		must(t, json.Unmarshal([]byte(body), &doc))
		if doc.Status != "queued" {
			t.Fatal(body)
		}
		m.settled(t)
		return doc.ID
	}
	get := func(id string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", m.server.URL+"/v1/responses/"+id, nil)
		must(t, err)
		if _, _, err := m.send(r); err != nil {
			t.Fatal(err)
		}
		m.settled(t)
	}
	id := begin()
	held := m.held(t, "tokens")
	get(id) // in progress
	if held == 0 || m.held(t, "tokens") != held || m.booked(t, "tokens") != 0 {
		t.Errorf("%d are held, %d after a look at it, %d booked", held, m.held(t, "tokens"),
			m.booked(t, "tokens"))
	}
	get(id)
	m.agrees(t, "tokens", "money", "free")
	get(id)
	get("resp_unknown") // of another process, in which its hold lapses
	m.agrees(t, "tokens", "money")
	if units := m.standin.Counts().Units; units["tokens/gpt-5-mini"] <= 50 || units["money"] == 0 {
		t.Errorf("the stand-in billed %v", units)
	}

	begin() // nobody asks for it
	if m.held(t, "tokens") != held {
		t.Errorf("%d are held, want %d", m.held(t, "tokens"), held)
	}
}
