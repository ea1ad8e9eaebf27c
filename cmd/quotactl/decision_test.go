package main

import (
	"strings"
	"testing"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// A denial on a terminal names the command that helps. For a suspended bucket that is not the
// command that shows the spenders.
func TestDenialSaysWhatToType(t *testing.T) {
	day := quota.Limit{Bucket: "default", Units: 10, Window: quota.Window{Length: 1}}
	g := &gate{Budget: &quota.Budget{Limits: []quota.Limit{day}},
		cfg: &config.Config{Prices: costs.Shipped(), Costs: costs.Default()}}
	for limit, want := range map[string]string{
		day.Name(): "quotactl explain --bucket default --units 3 --manual " +
			"shows who spent the units",
		quota.Suspended: "if its quota is back: quotactl resume --bucket default",
	} {
		d := quota.Decision{Limit: limit, Units: map[string]int64{"default": 3}}
		text := denied(cli.Screen{Bars: true}, d, g.phrasing(t.Context(), true, d))
		if !strings.HasSuffix(text, "\nhint: "+want) {
			t.Errorf("want the hint %q: %s", want, text)
		}
	}
}
