package costs_test

import (
	"fmt"
	"strings"
	"testing"

	"quotabudget/internal/costs"
)

// asked is the quote of a call of testdata/columns.yaml.
func asked(t testing.TB, body string) costs.Quote {
	t.Helper()
	return quoteOf(t, parsed(t, read(t, "columns.yaml")), "POST /v1/ask", body)
}

// unlisted is the models that have no row of their own.
func unlisted(all []costs.Unlisted) string {
	var names []string
	for _, u := range all {
		names = append(names, u.Value)
	}
	return strings.Join(names, " ")
}

// TestTableHolds: the most that a call can take is bounded by the context and the longest output of
// its model, and a model without a row counts as the dearest.
func TestTableHolds(t *testing.T) {
	for _, c := range []struct{ body, want, unlisted string }{
		// 38 bytes
		{`{"model":"small","max":10,"x":"......"}`,
			"tokens/small 49, money 39 to 79", ""},
		{`{"model":"small","x":".............."}`, "tokens/small 138, money 38 to 438", ""},
		{`{"model":"SMALL-2026-01-31","max":1}`, "tokens/small-2026-01-31 37, money 36 to 40", ""},
		{`{"model":"vendor/small-latest","max":1}`,
			"tokens/vendor-small-latest 40, money 39 to 43", ""},
		{`{"model":"small-0613","max":1}`, "tokens/small-0613 31, money 30 to 34", ""},
		{`{"model":"large-20260131","max":1,"x":"` + strings.Repeat(".", 99) + `"}`,
			"tokens/large-20260131 51, money 1000 to 1080", ""},
		{`{"model":"large-turbo","max":1}`, "tokens/large-turbo 32, money 620 to 700",
			"large-turbo"},
		{`{"model":"small-3","max":1}`, "tokens/small-3 28, money 540 to 620", "small-3"},
		// a price that changes on a day, and one that does not count yet
		{`{"model":"timed","max":0}`, "tokens/timed 25, money 150", ""},
		{`{"model":"coming","max":1}`, "tokens/coming 27, money 520 to 600", "coming"},
		{`{"max":1}`, "tokens/unknown 10, money 180 to 260", ""},
		{`{"model":"small-2","max":1,"speed":"fast"}`, "tokens/small-2 43, money 84 to 230", ""},
	} {
		q := asked(t, c.body)
		if got := quoted(q.Costs); got != c.want {
			t.Errorf("%s holds %s, want %s", c.body, got, c.want)
		}
		if got := unlisted(q.Unlisted); got != c.unlisted && c.body != `{"max":1}` {
			t.Errorf("%s: unlisted %q", c.body, got)
		}
	}
}

// TestTableSettles: the bill follows the model in the response, in the band of its prompt.
func TestTableSettles(t *testing.T) {
	for _, c := range []struct{ model, response, want, unlisted string }{
		{"small-2", `"usage":{"in":10,"out":1,"cached":4}`, "money 22", ""},   // 6×2 + 4×0.5 + 8
		{"small-2", `"usage":{"in":100,"out":1}`, "money 208", ""},            // not above 100
		{"small-2", `"usage":{"in":101,"out":1}`, "money 312", ""},            // 101×3 + 9
		{"small-2", `"usage":{"in":101,"out":1,"cached":1}`, "money 310", ""}, // 300 + 0.5 + 9
		{"small-2", `"usage":{"in":501,"out":1,"cached":1}`, "money 2009", ""},
		{"small-2", `"speed":"fast","usage":{"in":10,"out":0}`, "money 50", ""},
		{"small-2", `"speed":"","usage":{"in":10,"out":0}`, "money 20", ""},
		// another model than the one that was asked for
		{"small-2", `"model":"small-2026-01-31","usage":{"in":10,"out":1}`, "money 14", ""},
		{"", `"model":"small","usage":{"in":10,"out":1}`, "money 14", ""},
		{"small-9", `"model":"small","usage":{"in":10,"out":1}`, "money 14", ""},
		{"small", `"model":null,"usage":{"in":10,"out":1}`, "money 14", ""},
		{"small", `"model":"","usage":{"in":10,"out":1}`, "money 14", ""},
		// a name without a row is no dearer than the one that was asked for
		{"small", `"model":"deployment-7","usage":{"in":10,"out":1}`, "money 14", "deployment-7"},
		{"small-9", `"model":"small-10","usage":{"in":10,"out":0}`, "money 200", "small-10"},
		// several models in one response, and what is billed once however often it is used
		{"small", `"usage":{"in":1,"out":0,"parts":[{"out":1},{"out":1,"model":"large"}]}`,
			"money 85", ""},
		{"small", `"usage":{"in":1,"out":0,"boxes":[{"id":"a"},{"id":"a"},{"id":"b"},{}]}`,
			"money 2001", ""},
		// what cannot be counted is booked as the most
		{"small", `"usage":{"in":"1","out":0}`, "money 61", ""},
	} {
		q := asked(t, fmt.Sprintf(`{"model":%q,"max":9}`, c.model))
		out := answered(q, 200, "application/json", "{"+c.response+"}", 99)
		if got := quoted(out.Costs[1:]); got != c.want {
			t.Errorf("%s, %s takes %s, want %s", c.model, c.response, got, c.want)
		}
		if got := unlisted(out.Unlisted); got != c.unlisted {
			t.Errorf("%s, %s: unlisted %q", c.model, c.response, got)
		}
	}
}

// TestTableRefuses: if a table refuses unlisted keys, the call is not sent.
func TestTableRefuses(t *testing.T) {
	table := parsed(t, read(t, "columns.yaml"))
	for body, want := range map[string]string{
		`{"region":"eu"}`:   "money 15",
		`{"region":"mars"}`: `cannot price x.ship: the price list has no surcharge for "mars"`,
	} {
		q, err := table.Quote("x.ship", call(t, "POST /v1/ship", body), []byte(body), nil)
		if got := quoted(q.Costs); got != want && (err == nil || err.Error() != want) {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
	if table.Date != "2026-11" || table.Version != "2026-11" {
		t.Errorf("date %s, version %s: that of the newest source", table.Date, table.Version)
	}
}

func TestTableProblems(t *testing.T) {
	list := read(t, "columns.yaml")
	problemsOf(t, list, []replaced{
		{"cached: input, context", "cached: on, context",
			"line 22: rows.small: cached is missing, and so is its default on"},
		{"cached: input, context", "cached: '', context",
			"line 19: defaults.cached: is empty: write text"},
		{"context: 1000, ", "", "line 22: rows.small: context is missing"},
		{"small: {input: 1", "small: {inputs: 1",
			`line 22: small.inputs: unknown key "inputs" (did you mean input?)`},
		{"small: {input: 1", "small: {input: -1", "line 22: small.input: must be 0 to 1000000000000"},
		{"small: {input: 1, output: 4", "small: {input: 1", "line 22: rows.small: output is missing"},
		{"since: 2026-11-17", "since: soon",
			"line 22: small.since: must be a day such as 2026-06-01 or a month such as"},
		{"source: old}", "source: new}", `line 26: large*.source: "new" is not among the sources`},
		{"above: {500: ", "above: {long: ",
			"line 23: above.long: write a length of the prompt, and prompt in the table"},
		{"above: {500: ", "above: {nan: ",
			"line 23: above.nan: write a length of the prompt, and prompt in the table"},
		{"above: {500: ", "above: {inf: ",
			"line 23: above.inf: write a length of the prompt, and prompt in the table"},
		{"above: {500: ", "above: {1_00: ",
			"line 23: above.100: length 100 appears twice"},
		{"      coming: ", "      SMALL: ",
			"line 25: rows.SMALL: row small appears twice: case is ignored"},
		{"    prompt: [input, cached]\n", "",
			"line 22: above.500: write a length of the prompt, and prompt in the table"},
		{"prompt: [input, cached]", "prompt: [input, cashed]",
			`line 20: price.prompt: "cashed" is not one of the table's columns`},
		{"since: 2999-01-01}]", "since: 2001-02-03}]",
			"line 24: rows.timed: since must be later than in the row before it"},
		{"rows: {eu: 1.5, us: 1}", "rows: {eu: '', us: 1}", "line 27: rows.eu: is empty: write text"},
		{"unknown: dearest", "unknown: cheapest", "unknown: must be refuse or dearest"},
		{"longest: 100, normal", "shortest: 1, longest: 100, normal",
			`line 19: defaults.shortest: "shortest" is not one of the table's columns`},
		{"[output, input, cached, ", "[output, input, source, cached, ",
			`columns: "source" cannot be used`},
		{"unknown: refuse, rows: {eu: 1.5, us: 1}", "unknown: dearest, rows: {eu: a, us: b}",
			"must be refuse in a table of words"},
		{`price(model, "context"))`, `price(model, "contex"))`,
			`the table price has no column "contex": it has output, input,`},
		{"price(model, {input: prompt, output", "price(model, {input: prompt, outputs",
			`the table price has no column "outputs"`},
		{`price(model, "longest")`, `price(model)`, "not enough arguments to call price"},
		{"written: 'body.max", "prompt2: 'usage.max", "unknown name usage"},
		{"  written: ", "  model: ", `line 12: numbers.model: "model" cannot be used as a name, or is in use`},
		{"response: usage.speed", "response: body.speed",
			"line 9: speed.response: unknown name body (1:1)"},
		{", response: usage.speed", "", "line 9: split.speed: response is missing"},
	})
}

// TestPricesOfADay: a call costs what its row says on the day on which it is sent, and a list shows
// the rows of any day.
func TestPricesOfADay(t *testing.T) {
	table := parsed(t, strings.Replace(read(t, "columns.yaml"), "coming: {",
		"gone: {input: 3, output: 3, since: 2001-01-01, until: 2001-02-03}\n      coming: {", 1))
	const body = `{"model":"%s","max":0}`
	for _, c := range []struct{ day, model, want, unlisted string }{
		{"2001-02-02", "timed", "tokens/timed 25, money 125", ""},
		{"2001-02-03", "timed", "tokens/timed 25, money 150", ""},
		{"2999-01-01", "timed", "tokens/timed 25, money 175", ""},
		{"2001-02-02", "gone", "tokens/gone 24, money 72", ""},
		{"2001-02-03", "gone", "tokens/gone 24, money 480", "gone"},
		{"2000-12-31", "gone", "tokens/gone 24, money 480", "gone"},
	} {
		text := fmt.Sprintf(body, c.model)
		q, err := table.At(c.day).Quote("x.ask", call(t, "POST /v1/ask", text), []byte(text), nil)
		must(t, err)
		if got := quoted(q.Costs); got != c.want || unlisted(q.Unlisted) != c.unlisted {
			t.Errorf("%s on %s: %s, unlisted %v", c.model, c.day, got, q.Unlisted)
		}
		for _, prices := range table.Tables() {
			for _, r := range prices.On(c.day) {
				if r.Key == c.model && c.unlisted != "" || !r.Counts(c.day) {
					t.Errorf("on %s the rows have %+v", c.day, r)
				}
			}
		}
	}
}
