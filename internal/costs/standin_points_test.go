package costs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// selection draws what is asked of an object: connections with sizes as literals or variables,
// objects, scalars, and fragments by name or in place.
func selection(t *rapid.T, depth int) string {
	var b strings.Builder
	b.WriteString("{id")
	for range rapid.IntRange(0, 2).Draw(t, "fields") {
		size := rapid.SampledFrom([]string{"1", "3", "50", "100", "$n", "$d"}).Draw(t, "size")
		way := rapid.SampledFrom([]string{"first", "last"}).Draw(t, "way")
		below := "{id}"
		if depth > 0 {
			below = selection(t, depth-1)
		}
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			fmt.Fprintf(&b, " a%d:things(%s:%s,after:\"x}\"){nodes%s}", b.Len(), way, size, below)
		case 1:
			fmt.Fprintf(&b, " b%d:others(order:{by:NAME},%s:%s){edges{node%s}}", b.Len(), way, size,
				below)
		case 2:
			fmt.Fprintf(&b, " c%d:owner%s", b.Len(), below)
		case 3:
			fmt.Fprintf(&b, " ...on Thing @include(if:true)%s", below)
		case 4:
			b.WriteString(" ...F")
		}
	}
	return b.String() + "}"
}

// TestPointsAgree: the list and the stand-in, which share only the parser and the formula, count
// the same points of any query, and refuse the same queries.
func TestPointsAgree(t *testing.T) {
	j := judge(t, "github", "graphql=1000000000/1h", "graphql_points=1000000/1m")
	rapid.Check(t, func(t *rapid.T) {
		query := "query Q($n:Int,$d:Int=7)" + selection(t, 3) +
			" # a comment {\n fragment F on Thing{more(last:2){totalCount}}"
		body, _ := json.Marshal(map[string]any{"query": query,
			"variables": map[string]any{"n": 20}})
		r, quote, unpriced := j.ask("POST /graphql " + string(body))
		before := j.standin.Counts()
		listed := int64(0)
		if unpriced != nil {
			resp, err := http.DefaultTransport.RoundTrip(r)
			must(j.T, err)
			resp.Body.Close()
		} else {
			for _, c := range j.answer(r, quote).Costs {
				if c.Bucket == "graphql" {
					listed = c.Units
				}
			}
		}
		after := j.standin.Counts()
		if billed := after.Units["graphql"] - before.Units["graphql"]; billed != listed ||
			(unpriced == nil) != (after.Failed == before.Failed) {
			t.Errorf("the list says %d (%v), the stand-in %d: %s", listed, unpriced, billed, query)
		}
	})
}
