package costs_test

import (
	"net/http"
	"strings"
	"testing"

	"quotabudget/internal/costs"
)

// FuzzParse puts texts into a small list, or into one with every key, in place of some of it. It
// looks for a list that makes Parse panic, or that Parse accepts although the programs cannot price
// by it. A whole list as the text would be long: go test spends its time on making it shorter.
func FuzzParse(f *testing.F) {
	all := read(f, "all-keys.yaml")
	for _, seed := range []struct{ list, at, cut, text string }{
		{small, "version", "", "# a comment\n"},
		{small, "2, default: 1", "2", "1000000000000"},
		{small, "2, default: 1", "2", "0x2"},
		{small, "GET /things,", "GET /things", "\"GET /things/{a}/b\""},
		{small, "GET /things,", "GET /things", "PUT /upload/things"},
		{small, "current: {}", "{}",
			"{methods: {s.things.get: {cost: {none: 9}, source: table}}}"},
		{small, "source: table}\n  s", "table", "table, upload: true, note: n"},
		{small, "UTC", "UTC", "Europe/Berlin"},
		{small, "[/upload]", "/upload", "/upload, /resumable/upload"},
		{small, "sources:", "",
			"  x: &x {metric: s.example/x, daily: 1, timezone: UTC, source: table}\n  y: *x\n"},
		{small, "profiles", "profiles", "<<"},
		{small, "version", small, "\x00"},
		{all, "len(body) / 4", "len(body) / 4", "body.a.b * 2 ?? p95"},
		{all, "usage.in", "usage.in", "count(\"data.*\") + held.output - 5"},
		{all, "class(body.model)", "class(body.model)", "header(\"x\")"},
		{all, "status == 304", "status == 304", "any(answer.x, .y == 1)"},
		{all, "[usage, message.usage]", "usage", "a.b"},
		{all, "window: 1m", "1m", "day"},
		{all, "GET /v2/{rest...}", "{rest...}", "{a}:b"},
		{all, "429, 529", "529", "5xx"},
		{all, "  calls:", "  calls:", "  calls: &x {}\n  more: *x\n  other:"},
	} {
		at := strings.Index(seed.list, seed.at)
		if at < 0 {
			f.Fatalf("%q is not in the text", seed.at)
		}
		f.Add(seed.list == small, uint16(at), uint16(len(seed.cut)), seed.text, `{"data":[1]}`)
	}
	f.Fuzz(func(t *testing.T, short bool, at, cut uint16, text, body string) {
		list := all
		if short {
			list = small
		}
		from := min(int(at), len(list))
		index, err := costs.ParseList("costs.yaml",
			[]byte(list[:from]+text+list[min(from+int(cut), len(list)):]), nil)
		if err != nil {
			if n := strings.Count(err.Error(), "\n"); n > 100 || err.Error() == "" {
				t.Errorf("%d problems: %.1000v", n, err)
			}
			return
		}
		table := index.Usual()
		for _, name := range table.Profiles() {
			view, err := table.Profile(name)
			must(t, err)
			if short {
				checkUsable(t, view)
			}
			for _, m := range view.Methods() {
				tried(t, view, m, body)
			}
		}
	})
}

// checkUsable checks that the programs can price calls by a variant of the small list.
func checkUsable(t *testing.T, table *costs.Table) {
	t.Helper()
	drawn := map[string]bool{}
	for _, b := range table.Buckets() {
		drawn[b.Name] = true
		if b.Daily < 0 || !b.Reset.IsCalendar() {
			t.Errorf("bucket %+v", b)
		}
		if found, ok := table.BucketOfMetric(b.Metric); !ok || found.Name != b.Name {
			t.Errorf("%s is the metric of %s, and of %s", b.Metric, b.Name, found.Name)
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

// tried prices a call of a method and reads answers to it.
func tried(t *testing.T, table *costs.Table, m costs.Method, body string) {
	t.Helper()
	r, err := http.NewRequest(m.Verb, "http://x"+template.ReplaceAllString(m.Path, "x"), nil)
	if err != nil {
		t.Errorf("%s %s: %v", m.Verb, m.Path, err)
		return
	}
	q, err := table.Quote(m.ID, r, []byte(body), nil)
	if err != nil {
		return
	}
	for _, status := range []int{200, 304, 429, 500} {
		for _, kind := range []string{"application/json", "text/event-stream"} {
			o := q.Observe(status, http.Header{"Content-Type": {kind}})
			o.Write([]byte(body))
			out := o.Close()
			if len(out.Costs) != len(q.Costs) {
				t.Errorf("%s: %d costs settle as %d", m.ID, len(q.Costs), len(out.Costs))
			}
			for i, c := range out.Costs {
				if c.Units < 0 || c.Units > 1e12 || c.Bucket != q.Costs[i].Bucket {
					t.Errorf("%s settles %+v as %+v", m.ID, q.Costs[i], c)
				}
			}
		}
	}
}
