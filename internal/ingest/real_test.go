package ingest_test

import (
	"os"
	"strings"
	"testing"

	"quotabudget/internal/ingest"
	"quotabudget/internal/standin"
)

// TestRealCharts sweeps the real charts, if they are installed.
func TestRealCharts(t *testing.T) {
	dir := standin.SharedData(os.Getenv("QUOTA_SHARED_DATA"), "trending")
	if dir == "" {
		t.Log("no real charts here: only generated ones were swept")
		return
	}
	charts, err := standin.LoadDir(dir)
	must(t, err)
	s := open(t, &standin.YouTube{Charts: charts}, units(1000))
	list := append(charts.Regions(charts.Days()-1), "AU") // a region the data lack
	sum, err := s.sweep(t, strings.Join(list, ","), 0).Execute(t.Context())
	if err != nil || sum.Outcome != "complete" {
		t.Errorf("swept %s, %v", written(sum), err)
	}
	for _, r := range sum.Regions {
		want, missing := len(s.served(r.Region, 1000)), r.Region == "AU"
		if r.Videos != want || (r.Outcome == ingest.Unavailable) != missing {
			t.Errorf("%+v, want %d videos", r, want)
		}
		s.whole(t, r.Region, 1000)
	}
	s.balanced(t)
}
