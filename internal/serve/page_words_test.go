package serve

import (
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "just now", 59 * time.Second: "just now", time.Minute: "1 min ago",
		119 * time.Minute: "119 min ago", 2 * time.Hour: "2 h ago", 49 * time.Hour: "2 days ago",
		-time.Hour: "just now",
	} {
		at := nine.Add(-d)
		if got := ago(nine, at); got != timeTag(at, want) {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
	if ago(nine, time.Time{}) != "never" || clock(nine, time.Time{}) != "never" {
		t.Error("no moment is not never")
	}
}

func TestLength(t *testing.T) {
	for text, want := range map[string]string{"PT3M20S": "3:20", "PT45S": "0:45",
		"PT1H5S": "1:00:05", "P1DT2H": "26:00:00", "": "", "P": "", "about an hour": "",
		"PT99999999999S": "", "PT17M25S": "17:25", "PT1045S": "17:25", "PT90M": "1:30:00",
		"PT61M61S": "1:02:01", "PT0S": "0:00", "P0D": "0:00", "P1W": "168:00:00", "PT": "",
		"P5M": "", "P1Y": "", "PT12.75S": "0:12", "PT3600S": "1:00:00", "pt3s": "", "-PT3S": ""} {
		if got := length(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A plot has between two and seven lines of the grid each way, whatever it shows.
func TestGrid(t *testing.T) {
	for _, high := range []float64{1, 2, 9, 10, 99, 100, 9500, 10_000, 3e9, 1e15} {
		for d := time.Minute; d < 20*365*24*time.Hour; d = d * 17 / 10 {
			p := &plot{From: nine, To: nine.Add(d), Height: 150}
			p.between(0, high)
			if n := len(p.Rows); n < 2 || n > 7 {
				t.Errorf("0 to %g: %d rows", high, n)
			}
			if n := len(p.Columns); n < 2 || n > 7 {
				t.Errorf("%s: %d columns", d, n)
			}
		}
	}
}
