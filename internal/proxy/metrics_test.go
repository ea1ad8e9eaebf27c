package proxy

import (
	"fmt"
	"testing"
)

// TestPartsAreBounded: made-up parts of a bucket do not make series without end.
func TestPartsAreBounded(t *testing.T) {
	m := NewMetrics()
	for i := range 2 * maxParts {
		m.booked("chat", map[string]int64{fmt.Sprintf("tokens/m%d", i): 1, "money": 1})
	}
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series, sum := 0, 0.0
	for _, f := range families {
		if f.GetName() == "proxy_units_total" {
			series = len(f.GetMetric())
			for _, s := range f.GetMetric() {
				sum += s.GetCounter().GetValue()
			}
		}
	}
	if series != maxParts+2 || sum != 4*maxParts {
		t.Errorf("%d series with %g units", series, sum)
	}
}
