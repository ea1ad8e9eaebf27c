package costs_test

import (
	"net/http"
	"strings"
	"testing"

	"quotabudget/internal/costs"
)

// FuzzParseList puts texts into a list that has every key. An accepted list must price each of its
// methods, or return an error, and read any response.
func FuzzParseList(f *testing.F) {
	all := read(f, "all-keys.yaml")
	for _, seed := range []struct{ at, cut, text string }{
		{"len(body) / 4", "len(body) / 4", "body.a.b * 2 ?? p95"},
		{"usage.in", "usage.in", "count(\"data.*\") + held.output - 5"},
		{"class(body.model)", "class(body.model)", "header(\"x\")"},
		{"status == 304", "status == 304", "any(answer.x, .y == 1)"},
		{"[usage, message.usage]", "usage", "a.b"},
		{"window: 1m", "1m", "day"},
		{"{retry", "", "x: "},
		{"GET /v2/{rest...}", "{rest...}", "{a}:b"},
		{"429, 529", "529", "5xx"},
		{"  calls:", "  calls:", "  calls: &x {}\n  more: *x\n  other:"},
	} {
		f.Add(uint16(max(0, strings.Index(all, seed.at))), uint16(len(seed.cut)), seed.text,
			`{"data":[1]}`)
	}
	f.Fuzz(func(t *testing.T, at, cut uint16, text, body string) {
		from := min(int(at), len(all))
		table, err := costs.Parse([]byte(all[:from] + text + all[min(from+int(cut), len(all)):]))
		if err != nil {
			if n := strings.Count(err.Error(), "\n"); n > 100 || err.Error() == "" {
				t.Errorf("%d problems: %.1000v", n, err)
			}
			return
		}
		for _, m := range table.Methods() {
			tried(t, table, m, body)
		}
	})
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
