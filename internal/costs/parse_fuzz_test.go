package costs_test

import (
	"strings"
	"testing"

	"quotabudget/internal/costs"
)

// FuzzParse puts a text into a price list in place of some of it, and looks for a list that makes
// Parse panic, or that it takes and then cannot price by. A text of its own would be as long as a
// list: go test spends its time on making it shorter.
func FuzzParse(f *testing.F) {
	for _, seed := range []struct{ at, cut, text string }{
		{"version", "", "# a comment\n"},
		{"2, default: 1", "2", "1000000000000"},
		{"2, default: 1", "2", "0x2"},
		{"GET /things,", "GET /things", "\"GET /things/{a}/b\""},
		{"GET /things,", "GET /things", "PUT /upload/things"},
		{"current: {}", "{}", "{methods: {s.things.get: {cost: {none: 9}, source: table}}}"},
		{"source: table}\n  s", "table", "table, upload: true, note: n"},
		{"UTC", "UTC", "Europe/Berlin"},
		{"[/upload]", "/upload", "/upload, /resumable/upload"},
		{"sources:", "", "  x: &x {metric: s.example/x, daily: 1, timezone: UTC}\n  y: *x\n"},
		{"profiles", "profiles", "<<"},
	} {
		f.Add(uint16(strings.Index(small, seed.at)), uint16(len(seed.cut)), seed.text)
	}
	f.Add(uint16(0), uint16(len(small)), "\x00")
	f.Fuzz(func(t *testing.T, at, cut uint16, text string) {
		from := min(int(at), len(small))
		table, err := costs.Parse([]byte(small[:from] + text +
			small[min(from+int(cut), len(small)):]))
		if err != nil {
			if n := strings.Count(err.Error(), "\nline "); n > 100 || err.Error() == "" {
				t.Errorf("%d problems: %.1000v", n, err)
			}
			return
		}
		for _, name := range table.Profiles() {
			view, err := table.Profile(name)
			must(t, err)
			usable(t, view)
		}
	})
}

// usable is what the programs take for granted in a price list.
func usable(t *testing.T, table *costs.Table) {
	t.Helper()
	drawn := map[string]bool{}
	for _, b := range table.Buckets() {
		drawn[b.Name] = true
		if b.Daily < 0 || !b.Reset.IsCalendar() {
			t.Errorf("bucket %+v", b)
		}
		if of, ok := table.BucketOfMetric(b.Metric); !ok || of.Name != b.Name {
			t.Errorf("%s is the metric of %s, and of %s", b.Metric, b.Name, of.Name)
		}
	}
	for _, m := range table.Methods() {
		price, err := table.Price(m.ID)
		if err != nil || len(price) == 0 {
			t.Errorf("%s costs %v, %v", m.ID, price, err)
		}
		for i, c := range price {
			if c.Units < 1 || !drawn[c.Bucket] || i > 0 && price[i-1].Bucket == c.Bucket {
				t.Errorf("%s costs %v", m.ID, price)
			}
		}
		r := request(t, m.Verb, template.ReplaceAllString(m.Path, "x"))
		if got, err := table.Method(r); err != nil || got != m.ID &&
			!strings.Contains(m.Path, "{") {
			t.Errorf("%s %s is %q, %v: want %s", m.Verb, m.Path, got, err, m.ID)
		}
	}
	for _, l := range table.DefaultLimits() {
		if l.Headroom < 0 || l.Headroom > l.Units {
			t.Errorf("limit %+v", l)
		}
	}
}
