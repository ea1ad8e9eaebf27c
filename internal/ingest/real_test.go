package ingest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quotabudget/internal/youtube/youtubetest"
)

// TestRealCharts sweeps the charts of shared/data/trending, where they are at hand.
func TestRealCharts(t *testing.T) {
	dir := realCharts()
	if dir == "" {
		t.Log("shared/data/trending is not here: only generated charts were swept")
		return
	}
	charts, err := youtubetest.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, &youtubetest.Server{Charts: charts}, units(1000))
	list := append(charts.Regions(charts.Days()-1), "AU") // which the data do not have
	sum, err := s.sweep(t, strings.Join(list, ","), 0).Execute(t.Context())
	if err != nil || sum.Outcome != "complete" {
		t.Errorf("swept %s, %v", written(sum), err)
	}
	for _, r := range sum.Regions {
		if want := len(s.served(r.Region, 1000)); r.Videos != want || (r.Outcome == "unavailable") != (r.Region == "AU") {
			t.Errorf("%+v, want %d videos", r, want)
		}
		s.whole(t, r.Region, 1000)
	}
	s.balanced(t)
}

// realCharts is shared/data/trending in $QUOTA_SHARED_DATA or above the test, "" where there is
// none.
func realCharts() string {
	candidates := []string{filepath.Join(os.Getenv("QUOTA_SHARED_DATA"), "trending")}
	for dir, err := os.Getwd(); err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		candidates = append(candidates, filepath.Join(dir, "shared", "data", "trending"))
	}
	for _, dir := range candidates {
		if found, _ := filepath.Glob(filepath.Join(dir, "*.jsonl.gz")); len(found) > 0 {
			return dir
		}
	}
	return ""
}
