package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quotabudget/internal/quota"
)

// TestMissing: for a response without usage, the most that the call can take is booked, and logged
// once.
func TestMissing(t *testing.T) {
	t.Parallel()
	m := openMetered(t)
	for i := range 3 {
		body := strings.Replace(chat(i, 30), `"include_usage":true`, `"include_usage":false`, 1)
		m.ask(t, chatPath, body)
	}
	m.awaitSettled(t)
	booked, held := m.openai.booked(t)
	if booked["tokens/gpt-4.1"] < 3*400 || booked["requests/gpt-4.1"] != 3 || held != 0 {
		t.Errorf("booked %v, %d held", booked, held)
	}
	if n := strings.Count(m.log.String(), "does not report what the call used"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	for name, want := range map[string]int64{"proxy_answers_without_cost_total": 3,
		"proxy_units_total tokens/gpt-4.1": booked["tokens/gpt-4.1"],
		"proxy_units_total money":          booked["money"],
		"proxy_requests_total served":      3, "proxy_requests_in_flight": 0} {
		if got := m.metric(t, name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

// TestUnlistedModel: models without a price are logged once each, up to a bound.
func TestUnlistedModel(t *testing.T) {
	t.Parallel()
	m := openMetered(t)
	for _, c := range []struct{ model, says string }{
		{"gpt-4.1", ""}, {"gpt-9", "model=gpt-9"}, {"gpt-9", ""}, {`gpt-9\nx`, `model="gpt-9\nx"`},
	} {
		before := len(m.log.String())
		body := strings.Replace(chat(1, 3), "gpt-4.1", c.model, 1)
		m.ask(t, chatPath, body)
		m.awaitSettled(t)
		told := m.log.String()[before:]
		if strings.Contains(told, "has no row for") != (c.says != "") ||
			!strings.Contains(told, c.says) {
			t.Errorf("%s: %s", c.model, told)
		}
	}
	for i := range 200 {
		m.ask(t, chatPath, strings.Replace(chat(1, 3), "gpt-4.1", fmt.Sprintf("made-up-%d", i), 1))
	}
	m.awaitSettled(t)
	if n := strings.Count(m.log.String(), "has no row for"); n != 100 {
		t.Errorf("logged %d times", n)
	}
	labels := map[string]int{}
	for e, err := range quota.All(t.Context(), m.ledger,
		quota.Query{Credential: "openai", Bucket: "money"}) {
		must(t, err)
		labels[e.Labels[quota.LabelUnlisted]]++
	}
	// logged models are labelled by name
	if labels["gpt-9"] != 2 || labels["made-up-0"] != 1 || labels["others"] != 102 ||
		len(labels) != 101 {
		t.Errorf("%d labels: %v", len(labels), labels)
	}
}

// metric returns the value of a metric with the given values of its labels.
func (m *metered) metric(t testing.TB, name string) int64 {
	t.Helper()
	words := strings.Fields(name)
	families, err := m.proxy.Metrics.Registry.Gather()
	must(t, err)
	for _, family := range families {
		for _, one := range family.GetMetric() {
			labels := map[string]bool{family.GetName(): true}
			for _, label := range one.GetLabel() {
				labels[label.GetValue()] = true
			}
			if !slices.ContainsFunc(words, func(w string) bool { return !labels[w] }) {
				return int64(one.GetCounter().GetValue() + one.GetGauge().GetValue())
			}
		}
	}
	return -1
}

// TestKeyRefused: a key that the upstream refuses is logged once, because callers would suspect
// their own key.
func TestKeyRefused(t *testing.T) {
	t.Parallel()
	m := openMetered(t)
	m.openai.standin.Keys, m.openai.Proxied = []string{"another"}, true
	for range 2 {
		if a := m.ask(t, chatPath, chat(1, 3)); a.status != 401 {
			t.Errorf("got %d", a.status)
		}
	}
	if n := strings.Count(m.log.String(), "refuses the key of the credential"); n != 1 {
		t.Errorf("logged %d times: %s", n, &m.log)
	}
}
