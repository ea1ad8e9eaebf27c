package youtube

import (
	"fmt"
	"testing"
	"time"
)

// FuzzDuration looks for a duration that is negative, or reads otherwise in seconds alone.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{"PT1H2M3S", "P1DT2S", "P3W", "P", "PT", "P0D", "PT999999S",
		"P999999W999999DT999999H999999M999999S", "PT-1S", "P1M"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := parseDuration(text)
		if d < 0 || d%time.Second != 0 {
			t.Errorf("%q is %s", text, d)
		}
		if s := d / time.Second; s <= 999_999 && parseDuration(fmt.Sprintf("PT%dS", s)) != d {
			t.Errorf("%q is %s, and in seconds %s", text, d, parseDuration(fmt.Sprintf("PT%dS", s)))
		}
	})
}
