package costs_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"quotabudget"
	"quotabudget/internal/costs"
)

const small = `version: 2026-06-01
profile: current
hosts: [s.example]
uploads: [/upload]
buckets:
  default: {metric: s.example/default, daily: 10, timezone: America/Los_Angeles, required: true,
    source: table}
  none: {metric: s.example/none, daily: 0, timezone: UTC, required: true, source: table}
sources:
  table: {status: official, date: 2026-06, text: a table}
profiles:
  current: {}
methods:
  s.things.list: {route: GET /things, cost: {none: 2, default: 1}, source: table}
  s.things.get: {route: "GET /things/{id}", cost: {default: 1}, source: table}
`

func TestParse(t *testing.T) {
	table := parsed(t, small)
	m, err := table.Lookup("s.things.list")
	if err != nil || len(m.Costs) != 2 || m.Costs[0].Bucket != "default" || m.Costs[1].Units != 2 {
		t.Errorf("%+v, %v", m, err)
	}
	if limits := table.DefaultLimits(); len(limits) != 4 || limits[0].Headroom != 0 ||
		limits[3].Units != 0 {
		t.Errorf("limits %v", limits)
	}
}

// replaced has a part of a list, its replacement, and the expected problem, or "".
type replaced struct{ old, new, want string }

// problemsOf replaces each of the parts in a list, and checks the problem.
func problemsOf(t *testing.T, list string, cases []replaced) {
	t.Helper()
	for _, c := range cases {
		text := strings.Replace(list, c.old, c.new, 1)
		if text == list {
			t.Fatalf("%q is not in the text", c.old)
		}
		_, err := costs.ParseList("costs.yaml", []byte(text), nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got  %v\nwant %s", c.new, err, c.want)
		}
	}
}

func TestParseReportsEachProblem(t *testing.T) {
	problemsOf(t, small, []replaced{
		{"profile: current", "profile: current\nmethod: {}",
			`line 3: unknown key "method" (did you mean methods?)`},
		{"s.example/none", "s.example/default", "line 8: none.metric: bucket none has the metric of default"},
		{"{none: 2,", "{nun: 2,", `line 14: cost.nun: bucket "nun" is not among the buckets`},
		{"{none: 2, default: 1}", "{}", "line 14: list.cost: write at least one"},
		{"none: 2,", "none: 0,", "line 14: cost.none: must be 1 to 1000000000000"},
		{"none: 2,", "none: -5,", "line 14: cost.none: must be 1 to 1000000000000"},
		{"none: 2,", `none: "2",`, "line 14: cost.none: must be a whole number in decimal digits, without quotes, such as 10000"},
		{"GET /things,", "get /things,",
			`line 14: list.route: "get /things": write a verb and a path, such as GET`},
		{"GET /things,", "GET things/,",
			`line 14: list.route: "GET things/": write a verb and a path, such as GET`},
		{"GET /things,", `"GET /things/{name}",`,
			"line 15: get.route: methods s.things.list and s.things.get share the"},
		{"GET /things,", "GET /upload/a, upload: true,", ""},
		{"s.things.get:", "things:",
			`line 15: methods.things: "things" is not the ID of a method, such as`},
		{"default: 1}, source: table}\n", "default: 1}, source: tabel}\n",
			`line 14: list.source: "tabel" is not among the sources (did you mean`},
		{"official", "certain",
			"line 10: table.status: must be official, secondary, unverified or verified"},
		{"2026-06, text", "2026-13, text",
			"line 10: table.date: must be a day such as 2026-06-01 or a month such as"},
		{"2026-06, text", "2026-02-31, text",
			"line 10: table.date: must be a day such as 2026-06-01 or a month such as"},
		{"2026-06, text", "2026-02-28, text", ""},
		{"timezone: UTC", "timezone: Pacific",
			`line 8: none.timezone: "Pacific" is not an IANA time zone such as`},
		{"daily: 10,", "daily: ten,", "line 6: default.daily: must be a whole number in decimal digits, without"},
		{"  none:", "  Default:",
			`line 8: buckets.Default: "Default" is not a name: use up to 63 lower-case`},
		{"current: {}", "current: {methods: {s.thing.get: {cost: {default: 1}, source: table}}}",
			`line 12: methods.s.thing.get: profile current prices "s.thing.get", which is not among ` +
				`the methods (did you mean s.things.get?)`},
		{"profile: current", "profile: old",
			`line 2: profile: no profile "old" in the price list: it has current`},
		{"[/upload]", "[upload]", "line 4: uploads: must be a path such as /upload"},
		{"cost: {none", "cost: {{none", "line 14: did not find expected ',' or '}': is a bracket or a quote not"},
	})
}

func TestParseReportsAllProblemsInOrder(t *testing.T) {
	text := strings.NewReplacer("none: 2", "nun: 2", "daily: 10", "daily: x", "current: {}",
		"current: {notes: x}", "version: 2026-06-01", "version: soon").Replace(small)
	_, err := costs.ParseList("costs.yaml", []byte(text), nil)
	want := []string{
		"line 1: version: must be a day such as 2026-06-01 or a month such as 2026-11",
		"line 6: default.daily: must be a whole number in decimal digits, without quotes, such as 10000",
		`line 12: profiles.current: unknown key "notes" (did you mean note?)`,
		`line 14: cost.nun: bucket "nun" is not among the buckets`,
	}
	if err == nil || !slices.Equal(strings.Split(err.Error(), "\n"), want) {
		t.Errorf("got\n%v\nwant\n%s", err, strings.Join(want, "\n"))
	}
}

// TestShippedListsFollowTheSchema: the shipped lists are valid. The programs do not validate them.
func TestShippedListsFollowTheSchema(t *testing.T) {
	data, err := fs.ReadFile(quotabudget.Costs(), "costs.yaml")
	must(t, err)
	if _, err := costs.ParseList("costs.yaml", data, quotabudget.Costs()); err != nil {
		t.Error(err)
	}
}

// TestLargeLists: a price list may have thousands of methods, and as many problems.
func TestLargeLists(t *testing.T) {
	t.Parallel()
	taking := func(bucket string) string {
		text := []byte(small)
		for i := range 8000 {
			text = fmt.Appendf(text, "  s.m%d: {route: GET /m%[1]d, cost: {%s: 1}, source: table}\n", i,
				bucket)
		}
		return string(text)
	}
	if n := len(parsed(t, taking("none")).Methods()); n != 8002 {
		t.Errorf("%d methods", n)
	}
	_, err := costs.ParseList("costs.yaml", []byte(taking("nun")), nil)
	if n := strings.Count(fmt.Sprint(err), "\n"); n != 100 ||
		!strings.HasSuffix(err.Error(), "only the first 100 problems are listed") {
		t.Errorf("%d problems: %.500v", n, err)
	}
}
