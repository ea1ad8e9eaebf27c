package costs_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

func TestPrices(t *testing.T) {
	table := costs.Default()
	single, err := table.Profile("single-pool")
	must(t, err)
	for _, c := range []struct {
		method, current, old string
	}{
		{"youtube.videos.list", "default 1", "default 1"},
		{"youtube.captions.update", "default 450", "default 450"},
		{"youtube.search.list", "search_list 1", "default 100, search_list 1"},
		{"youtube.videos.insert", "video_insert 1", "default 100"},
		{"youtube.videos.batchGetStats", "video_batch_get_stats 1", "default 1"},
	} {
		if got, err := table.Price(c.method); err != nil || quoted(got) != c.current {
			t.Errorf("%s costs %v, %v; want %v", c.method, got, err, c.current)
		}
		if got, err := single.Price(c.method); err != nil || quoted(got) != c.old {
			t.Errorf("in the single pool %s costs %v, %v; want %v", c.method, got, err, c.old)
		}
	}
	if back, err := single.Profile("current"); err != nil ||
		!slices.EqualFunc(back.Methods(), table.Methods(), sameMethod) {
		t.Errorf("current asked of single-pool is not what it was: %v", err)
	}
	if got := table.ProfileName() + " " + single.ProfileName(); got != "current single-pool" {
		t.Errorf("profiles are named %s", got)
	}
	if _, err := table.Profile("old"); err == nil ||
		!strings.Contains(err.Error(), "current, single-pool") {
		t.Errorf("an unknown profile: %v", err)
	}
}

func sameMethod(a, b costs.Method) bool {
	return a.ID == b.ID && a.Source == b.Source && slices.Equal(a.Costs, b.Costs)
}

func TestUnpricedMethodIsRefused(t *testing.T) {
	table := costs.Default()
	for method, hint := range map[string]string{
		"videos.list":                 "(did you mean youtube.videos.list?)",
		"youtube.vidoes.list":         "(did you mean youtube.videos.list?)",
		"youtube.Search.List":         "(did you mean youtube.search.list?)",
		"youtube.videos.batchgetstat": "(did you mean youtube.videos.batchGetStats?)",
		"drive.files.list":            "",
		"":                            "",
		strings.Repeat("x", 10000):    "",
	} {
		price, err := table.Price(method)
		if !errors.Is(err, quota.ErrUnpriced) || price != nil || len(err.Error()) > 200 ||
			!strings.Contains(err.Error(), hint) ||
			strings.Contains(err.Error(), "did you mean") != (hint != "") {
			t.Errorf("%.40q: %v, %.300v; want the hint %q", method, price, err, hint)
		}
	}
}

func TestPricesAreNotShared(t *testing.T) {
	table := costs.Default()
	price, _ := table.Price("youtube.videos.list")
	price[0].Units = 99
	table.Methods()[0].Costs[0].Units = 99
	for _, m := range table.Methods() {
		if m.Costs[0].Units == 99 {
			t.Errorf("%s was changed from outside", m.ID)
		}
	}
}

func TestDefaultLimits(t *testing.T) {
	names := func(limits []quota.Limit) (s []string) {
		for _, l := range limits {
			s = append(s, fmt.Sprintf("%s %d-%d", l.Name(), l.Units, l.Headroom))
		}
		return s
	}
	table := costs.Default()
	want := []string{
		"default 24h 10000-500", "default day America/Los_Angeles 10000-500",
		"search_list 24h 100-5", "search_list day America/Los_Angeles 100-5",
		"video_insert 24h 100-5", "video_insert day America/Los_Angeles 100-5",
		"video_batch_get_stats 24h 10000-500",
		"video_batch_get_stats day America/Los_Angeles 10000-500",
	}
	if got := names(table.DefaultLimits()); !slices.Equal(got, want) {
		t.Errorf("limits\n%v, want\n%v", got, want)
	}
	single, _ := table.Profile("single-pool")
	if got := names(single.DefaultLimits()); !slices.Equal(got, want[:4]) {
		t.Errorf("limits of the single pool\n%v, want\n%v", got, want[:4])
	}
	noon := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	start, end := table.Buckets()[0].Reset.Bounds(noon)
	if end.Sub(start) != 25*time.Hour {
		t.Errorf("the day of 2026-11-01 has %v", end.Sub(start))
	}
}

func TestPricesAgreeWithTheSurvey(t *testing.T) {
	name := standin.SharedData(os.Getenv("QUOTA_SHARED_DATA"), "youtube_costs.csv")
	if name == "" {
		return
	}
	file, err := os.Open(name)
	must(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	must(t, err)
	table := costs.Default()
	if len(rows)-1 != len(table.Methods()) {
		t.Errorf("the survey has %d methods, costs.yaml %d", len(rows)-1, len(table.Methods()))
	}
	status := map[string]string{"official-table": "official", "revision-history": "official",
		"secondary": "secondary", "unverified": "unverified"}
	for _, row := range rows[1:] {
		m, err := table.Lookup("youtube." + row[0])
		if err != nil {
			t.Error(err)
			continue
		}
		b, _ := table.BucketOfMetric(row[4])
		got := []string{m.Verb, m.Path, m.Costs[0].Bucket, strconv.FormatInt(m.Costs[0].Units, 10),
			strconv.FormatInt(b.Daily, 10), m.Source.Status}
		want := []string{row[1], "/" + row[2], b.Name, row[5], row[6], status[row[7]]}
		if len(m.Costs) != 1 || !slices.Equal(got, want) {
			t.Errorf("%s: %v, the survey has %v", m.ID, got, want)
		}
	}
}

// must ends a test after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
