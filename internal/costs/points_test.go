package costs

import (
	"fmt"
	"strings"
	"testing"
)

const nested = `query {
  viewer { repositories(first: 50) { edges { repository: node { name
    pullRequests(first: 20) { edges { pullRequest: node { title
      comments(first: 10) { edges { comment: node { bodyHTML } } } } } }
    issues(first: 20) { totalCount edges { issue: node { title bodyHTML
      comments(first: 10) { edges { comment: node { bodyHTML } } } } } } } } }
  followers(first: 10) { edges { follower: node { login } } } }
}`

func TestPoints(t *testing.T) {
	for _, c := range []struct {
		name, query, operation string
		variables              map[string]any
		points                 float64
	}{
		{"nothing but a field", `{viewer{login}}`, "", nil, 1},
		{"one connection", `{viewer{repositories(first:100){nodes{id}}}}`, "", nil, 1},
		// the example of GitHub's own page: 1 + 100 + 5,000 requests
		{"three levels", `{viewer{repositories(first:100){edges{node{issues(first:50){edges{node{` +
			`labels(first:60){nodes{id}}}}}}}}}}`, "", nil, 51},
		{"siblings", nested, "", nil, 21}, // 1 + 50 + 1000 + 50 + 1000 + 1
		{"a variable", `query($n:Int!){a(first:$n){b(last:$n){c(first:1){id}}}}`, "",
			map[string]any{"n": 30.0}, 9},
		{"a default", `query($n:Int=30){a(first:$n){b(last:$n){c(first:1){id}}}}`, "", nil, 9},
		{"the variable goes before its default", `query($n:Int=1){a(first:$n){b(last:$n){` +
			`c(first:1){id}}}}`, "", map[string]any{"n": 30.0}, 9},
		{"a null variable is no argument", `query($n:Int){a(first:$n){b(first:1){id}}}`, "",
			map[string]any{"n": nil}, 1},
		{"a variable without a value is no argument",
			`query($n:Int,$m:Int){a(first:$n,last:$m){b(first:100){c(first:1){id}}}}`, "",
			map[string]any{"n": 30.0}, 30},
		{"fragments", `{a(first:100){...F}} fragment F on X {b(first:100){... on Y{c(first:1){id}}}}`,
			"", nil, 101},
		{"an alias counts of its own", `{a(first:100){x:b(first:1){id} y:b(first:1){id}}}`, "", nil,
			2},
		{"first and last", `{a(first:10,last:100){b(first:1){c(first:1){id}}}}`, "", nil, 2},
		{"zero", `{a(first:0){b(first:50){id}}}`, "", nil, 1},
		{"the named operation", `query A{a} query B{a(first:100){b(first:5){c(first:1){id}}}}`, "B",
			nil, 6},
	} {
		got, err := points(graphQL{Query: c.query, Variables: c.variables,
			Operation: c.operation})
		if err != nil || got != c.points {
			t.Errorf("%s: %g points, %v; want %g", c.name, got, err, c.points)
		}
	}
}

func TestPointsOfHostileQueries(t *testing.T) {
	var doubling strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, "fragment F%d on X {...F%d ...F%d} ", i, i+1, i+1)
	}
	for _, c := range []struct{ name, query, want string }{
		{"not a query", `{`, "cannot be read"},
		{"empty", ``, "no such operation"},
		{"two operations", `query A{a} query B{a}`, "no such operation"},
		{"too many nodes", `{a(first:1000){b(first:1000){id}}}`, "more than 500000 nodes"},
		{"a huge number", `{a(first:99999999999999999999){b(first:99999999999999999999){id}}}`,
			"more than 500000 nodes"},
		{"negative", `{a(first:-5){id}}`, "not a whole number"},
		{"a text", `{a(first:"5"){id}}`, "not a whole number"},
		{"no value", `query($n:Int!){a(first:$n){id}}`, "has no value"},
		{"not declared", `query{a(first:$n){id}}`, "does not declare"},
		{"no such fragment", `{...F}`, "no fragment"},
		{"a cycle", `{...F} fragment F on X {...G} fragment G on X {...F}`, "contains itself"},
		{"doubling fragments", `{...F0} ` + doubling.String() + `fragment F40 on X {id}`,
			"more than 20000 fields"},
		{"deep", strings.Repeat("{a", 500) + strings.Repeat("}", 500), "more than 64 deep"},
		{"long", "{" + strings.Repeat("a ", 60_000) + "}", "cannot be read"},
	} {
		if _, err := points(graphQL{Query: c.query}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.300v, want %s", c.name, err, c.want)
		}
	}
}

func FuzzPoints(f *testing.F) {
	f.Add(nested, 5.0)
	f.Add(`query($n:Int=3){a(first:$n){...F}} fragment F on X {b(last:2){id}}`, 7.5)
	f.Fuzz(func(t *testing.T, query string, n float64) {
		points, err := points(graphQL{Query: query,
			Variables: map[string]any{"n": n}})
		if err == nil && (points < 1 || points > maxQueryNodes) {
			t.Errorf("%q takes %g points", query, points)
		}
	})
}
