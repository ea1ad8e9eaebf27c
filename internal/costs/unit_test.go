package costs

import "testing"

func TestUnit_Text(t *testing.T) {
	for _, c := range []struct {
		unit  string
		units int64
		want  string
	}{
		{"usd/1000000", 12_400_000, "$12.40"},
		{"usd/1000000", 1, "$0.000001"},
		{"usd/1000000", 0, "$0.00"},
		{"usd/1000000", -1_234_567_890_001, "-$1,234,567.90"},
		{"usd/1000000", 999_990_001, "$1,000.00"},
		{"tokens", 12_000, "12,000 tokens"},
		{"tokens", 1, "1 token"},
		{"units", -1000, "-1,000 units"},
		{"bytes", 999, "999 bytes"},
	} {
		u := unitOf(c.unit)
		if u.String() != c.unit {
			t.Fatal(u)
		}
		if got := u.Text(c.units); got != c.want {
			t.Errorf("%d %s: %s, not %s", c.units, c.unit, got, c.want)
		}
	}
}
