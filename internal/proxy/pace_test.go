package proxy_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
)

// morning is a day in a zone in which it is six o'clock now, or a little later.
func morning(t testing.TB) quota.Window {
	t.Helper()
	west := time.Now().UTC().Hour() - 6 // Etc/GMT+5 is west of Greenwich
	if west > 12 {
		west -= 24
	}
	day, err := quota.ParseWindow("day", fmt.Sprintf("Etc/GMT%+d", west))
	must(t, err)
	return day
}

// TestPace: the pace delays a call of an unknown price by the most that it can take. The call
// passes once the pace allows that much.
func TestPace(t *testing.T) {
	t.Parallel()
	day := quota.Limit{Bucket: "tokens", Units: 100_000, Window: morning(t)}
	m := meteredOn(t, metertest.File(t), []quota.Limit{day}, quiet)
	line := day
	line.Pace = &quota.Pace{Slack: 1600, Curve: make([]int64, 24)}
	line.Pace.Curve[20] = 1 // before the evening, the pace allows only its slack
	m.openai.Budget.Paces = []quota.Limit{line}
	if a := m.ask(t, chatPath, chat(1, 150)); a.status != 200 { // may use more than 1,400 units
		t.Fatal(a)
	}
	m.awaitSettled(t)
	a := m.ask(t, chatPath, chat(1, 150)) // with the first call, more than 1,600 units
	var said struct {
		Limit string
		Error struct{ Code string }
	}
	must(t, json.Unmarshal([]byte(a.body), &said))
	if a.status != 429 || said.Limit != quota.PaceName || said.Error.Code != "held_back_by_pace" {
		t.Errorf("%d %s", a.status, a.body)
	}
	m.expectBilled(t, m.openai)
}
