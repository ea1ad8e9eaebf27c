package costs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quotabudget/internal/costs"
)

const list = `# prices of a model maker
hosts: [api.example.test]
credential: bearer
sources:
  page:   {status: official, date: 2026-06, text: "the price page"}   # read by hand
split: {model: body.model}
tables:
  price:
    source: page
    unknown: dearest
    columns: [output, input, cached, write_1h, context, max_output]
    defaults: {cached: input}
    prompt: [input, cached, write_1h]
    rows:
      # the small ones
      small: {input: 1, output: 4, cached: 0.1, write_1h: 2, context: 1000, max_output: 100}   # since spring
      "large": {input: 5, output: 30, write_1h: 10, context: 1000, max_output: 100,
        above: {500: {input: 10, output: 45}}}
      timed: {input: 2, output: 8, write_1h: 4, context: 1000, max_output: 100}
      old: {input: 1, output: 1, write_1h: 2, context: 1000, max_output: 100}
buckets: {money: {unit: usd/1000000}}
methods:
  x.ask: {route: POST /ask, source: page, take: {money: "price(model, {input: len(body)})"}}
`

// The same prices in each format: small costs twice as much, large as before but for its long
// prompts, timed more from a day on, new is new, and old is gone.
const (
	genAI = `[{"id":"other","models":[]},{"id":"maker","models":[
{"id":"small","context_window":2000,"prices":{"input_mtok":2,"output_mtok":8,"cache_read_mtok":0.2}},
{"id":"large-20260101","context_window":1000,"prices":{"input_mtok":{"base":5,"tiers":[{"start":500,"price":11}]},
"output_mtok":{"base":30,"tiers":[{"start":500,"price":45}]}}},
{"id":"timed","prices":[{"prices":{"input_mtok":2,"output_mtok":8}},
{"constraint":{"start_date":"2026-12-01"},"prices":{"input_mtok":3,"output_mtok":8}}]},
{"id":"New:1","prices":{"input_mtok":3,"output_mtok":6}}]}]`
	modelsDev = `{"maker":{"id":"maker","models":{
"small":{"cost":{"input":2,"output":8,"cache_read":0.2},"limit":{"context":2000,"output":100}},
"large-20260101":{"cost":{"input":5,"output":30,"tiers":[{"tier":{"size":500},"input":11,"output":45}]},
"limit":{"context":1000,"output":100}},
"timed":{"cost":{"input":2,"output":8}},
"New:1":{"cost":{"input":3,"output":6}}}}}`
	liteLLM = `{"sample_spec":{"litellm_provider":"one of many"},
"small":{"litellm_provider":"maker","input_cost_per_token":2e-06,"output_cost_per_token":8e-06,
"cache_read_input_token_cost":2e-07,"max_input_tokens":2000},
"maker/large-20260101":{"litellm_provider":"maker","input_cost_per_token":5e-06,
"output_cost_per_token":3e-05,"input_cost_per_token_above_1k_tokens":1.1e-05,
"output_cost_per_token_above_1k_tokens":4.5e-05},
"timed":{"litellm_provider":"maker","input_cost_per_token":2e-06,"output_cost_per_token":8e-06},
"New:1":{"litellm_provider":"maker","input_cost_per_token":3e-06,"output_cost_per_token":6e-06}}`
)

const (
	day      = "2026-11-26"
	smallNew = `{output: 8, input: 2, cached: 0.2, write_1h: 4, context: 2000, max_output: 100, source: SOURCE}`
	largeNew = `{output: 30, input: 5, write_1h: 10, context: 1000, max_output: 100, source: SOURCE, ` +
		`above: {500: {output: 45, input: 11, cached: 11, write_1h: 22}}}`
	timedNew = `[{input: 2, output: 8, write_1h: 4, context: 1000, max_output: 100}, ` +
		`{output: 8, input: 3, write_1h: 6, context: 1000, max_output: 100, since: 2026-12-01, source: SOURCE}]`
	added = `
      "new:1": {output: 6, input: 3, write_1h: 6, context: 1000, max_output: 1000, source: SOURCE}`
)

// edited is the list with the new rows, and nothing else changed.
func edited(source string, pairs ...string) string {
	text := list
	for i := 0; i+1 < len(pairs); i += 2 {
		text = strings.Replace(text, pairs[i], strings.ReplaceAll(pairs[i+1], "SOURCE", source), 1)
	}
	return text
}

func parse(t *testing.T, text string) (*costs.Table, costs.PriceTable) {
	t.Helper()
	table := parsed(t, text)
	return table.At(day), table.Tables()[0]
}

// compare compares a list with a feed of the day.
func compare(t *testing.T, text string, models []costs.FeedModel,
	source string) []costs.FeedDifference {
	t.Helper()
	of, table := parse(t, text)
	return costs.CompareFeed(of, table, models, source, day)
}

// TestFeedFormats: each format changes the same rows, keeps every other byte, and changes nothing
// when it is imported again.
func TestFeedFormats(t *testing.T) {
	const (
		small = `{input: 1, output: 4, cached: 0.1, write_1h: 2, context: 1000, max_output: 100}`
		large = "{input: 5, output: 30, write_1h: 10, context: 1000, max_output: 100,\n        above: {500: {input: 10, output: 45}}}"
		timed = `{input: 2, output: 8, write_1h: 4, context: 1000, max_output: 100}`
		page  = `"the price page"}   # read by hand`
		old   = "      old: {input: 1, output: 1, write_1h: 2, context: 1000, max_output: 100}\n"
	)
	for format, data := range map[string]string{"genai-prices": genAI, "models.dev": modelsDev,
		"litellm": strings.ReplaceAll(liteLLM, "above_1k", "above_500k")} {
		models, detected, err := costs.ParseFeed([]byte(data), "", "maker")
		if err != nil || detected != format {
			t.Fatalf("%s is %s, %v", format, detected, err)
		}
		_, table := parse(t, list)
		all := compare(t, list, models, format)
		var names []string
		for _, d := range all {
			names = append(names, d.Row+" "+d.Refused)
		}
		wantLarge := largeNew
		if format == "litellm" {
			wantLarge = strings.Replace(largeNew, "above: {500:", "above: {500000:", 1)
		}
		wantTimed := timed
		want := "large ,small ,new:1 ,old the feed does not have it"
		if format == "genai-prices" {
			wantTimed, want = timedNew, "large ,small ,timed ,new:1 ,old the feed does not have it"
		}
		if got := strings.Join(names, ","); got != want {
			t.Errorf("%s: %s, want %s", format, got, want)
		}
		next, err := costs.RewriteTable(list, table, all, format, day)
		expected := edited(format, small, smallNew, large, wantLarge, timed, wantTimed, old, "",
			page, page+"\n  SOURCE: {status: secondary, date: "+day+`, text: "the prices of the `+
				`data set `+format+`"}`)
		before, after, _ := strings.Cut(expected, "\nbuckets:")
		expected = before + strings.ReplaceAll(added, "SOURCE", format) + "\nbuckets:" + after
		if err != nil || next != expected {
			t.Fatalf("%s: %v\n%s\nwant\n%s", format, err, next, expected)
		}
		if again := compare(t, next, models, format); len(again) > 0 {
			t.Errorf("%s again: %+v", format, again)
		}
	}
}

// TestRealFeeds rewrites a list by forms that the published data sets have.
func TestRealFeeds(t *testing.T) {
	genAI := func(models string) string { return `[{"id":"maker","models":[` + models + `]}]` }
	const twice = `{"input_mtok":2,"output_mtok":8}`
	const dated = `[{"prices":` + twice + `},{"constraint":{"start_date":"2027-01-01"},` +
		`"prices":{"input_mtok":4,"output_mtok":8}}]`
	for _, c := range []struct{ form, feed, day, want string }{
		{"an introductory price", genAI(model("small", dated)), day,
			`small: [{output: 8, input: 2, cached: 0.2, write_1h: 4, context: 1000, max_output: 100, ` +
				`source: genai-prices}, {output: 8, input: 4, cached: 0.4, write_1h: 8, context: 1000, ` +
				`max_output: 100, since: 2027-01-01, source: genai-prices}]`},
		{"of a new model", genAI(model("new", dated)), day,
			`new: [{output: 8, input: 2, write_1h: 4, context: 1000, max_output: 1000, ` +
				`source: genai-prices}, {output: 8, input: 4, write_1h: 8, context: 1000, ` +
				`max_output: 1000, since: 2027-01-01, source: genai-prices}]`},
		{"an older feed", genAI(model("small", twice)), "2026-05-31", "small: {input: 1,"},
		{"another name", genAI(`{"id":"tiny","match":{"or":[{"starts_with":"small"}]},"prices":` + twice +
			`}`), day, "small: {output: 8, input: 2,"},
		{"images", genAI(model("small", `{"input_mtok":2,"output_mtok":6,"output_image_mtok":8}`)), day,
			"small: {output: 8, input: 2,"},
		{"several makers", `{"small":{"litellm_provider":"maker","input_cost_per_token":1e-06,` +
			`"output_cost_per_token":4e-06},"maker/small":{"litellm_provider":"maker",` +
			`"input_cost_per_token":2e-06,"output_cost_per_token":8e-06}}`, day,
			"small: {output: 8, input: 2,"},
	} {
		models, format, err := costs.ParseFeed([]byte(c.feed), "", "maker")
		if err != nil {
			t.Fatalf("%s: %v", c.form, err)
		}
		parsed, table := parse(t, list)
		all := slices.DeleteFunc(costs.CompareFeed(parsed, table, models, format, c.day),
			func(d costs.FeedDifference) bool { return d.Refused != "" })
		next, err := costs.RewriteTable(list, table, all, format, c.day)
		if err != nil || !strings.Contains(next, "\n      "+c.want) {
			t.Errorf("%s: %v\n%s\nwant %s", c.form, err, next, c.want)
		}
		if parsed, table = parse(t, next); c.day == day {
			for _, d := range costs.CompareFeed(parsed, table, models, format, day) {
				if d.Refused == "" {
					t.Errorf("%s again: %+v", c.form, d)
				}
			}
		}
	}
}

// model writes a model of a feed in the format genai-prices.
func model(id, prices string) string { return `{"id":"` + id + `","prices":` + prices + `}` }

// differences compares a list with a feed of models in the format genai-prices.
func differences(t *testing.T, text, models string) []costs.FeedDifference {
	t.Helper()
	feed, _, err := costs.ParseFeed([]byte(`[{"id":"maker","models":[`+models+`]}]`), "", "maker")
	must(t, err)
	return compare(t, text, feed, "genai-prices")
}

// TestRefusedDifferences checks which changes of a row a person must accept: large ones, those
// after a refused one, and a new row far below the price that applied to its key before. A model
// without prices counts as missing from the feed; the others are compared.
func TestRefusedDifferences(t *testing.T) {
	text := strings.Replace(list, "      old:", "      fam*: {input: 6, output: 60, write_1h: 2, "+
		"context: 1, max_output: 1}\n      old:", 1)
	const cheap = `[{"prices":{"input_mtok":0.01,"output_mtok":0.04}},{"constraint":` +
		`{"start_date":"2026-12-01"},"prices":{"input_mtok":0.02,"output_mtok":0.04}}]`
	const timed = `,{"id":"timed","prices":{"input_mtok":3,"output_mtok":8}}`
	const low = " price is below a third of "
	large := model("large", "{}") + ","
	for _, c := range []struct{ models, row, want string }{ // the refusals of the row's changes
		{model("small", `{"input_mtok":2,"output_mtok":4}`), "small", ""},
		{model("small", `{"input_mtok":3,"output_mtok":4}`), "small", ""},
		{model("small", `{"input_mtok":3.1,"output_mtok":4}`), "small", "a price changes 3.1-fold"},
		{model("small", `{"input_mtok":0.3,"output_mtok":4}`), "small", "a price changes 3.33-fold"},
		{model("small", `{"input_mtok":0,"output_mtok":4}`), "small", "a price changes from or to 0"},
		{model("small", `{"output_mtok":1}`), "small", "a price changes 4-fold"},
		{model("small", "null") + timed, "small", "the feed does not have it"},
		{`{"id":"small"}` + timed, "small", "the feed does not have it"},
		{`{"id":"small"}` + timed, "timed", ""},
		{model("small", cheap), "small", "a price changes 100-fold|a price changes 100-fold"},
		{model("new", cheap), "new",
			"its output" + low + "any other row's|its output" + low + "any other row's"},
		{large + model("new", `{"input_mtok":0.4,"output_mtok":0.4}`), "new", ""},
		{large + model("new", `{"input_mtok":0.3,"output_mtok":1}`), "new",
			"its input" + low + "any other row's"},
		{large + model("new", `{"input_mtok":1,"output_mtok":0}`), "new",
			"its output" + low + "any other row's"},
		{large + model("new", `{"input_mtok":{"base":1,"tiers":[{"start":1,"price":0}]},`+
			`"output_mtok":1}`), "new", "its input" + low + "any other row's"},
		{large + model("fam-2", `{"input_mtok":2,"output_mtok":20,"cache_read_mtok":0}`), "fam-2",
			"its cached" + low + "fam*'s"},
		{large + model("fam-2", `{"input_mtok":2,"output_mtok":20}`), "fam-2", ""},
		{large + model("fam-2", `{"input_mtok":1.9,"output_mtok":20}`), "fam-2",
			"its input" + low + "fam*'s"},
		{large + model("large-0102", `{"input_mtok":2,"output_mtok":9}`), "large-0102",
			"its output" + low + "large's"},
	} {
		got := []string{}
		for _, d := range differences(t, text, c.models) {
			if d.Row == c.row {
				got = append(got, d.Refused)
			}
		}
		if len(got) == 0 || strings.Join(got, "|") != c.want {
			t.Errorf("%s: %q, want %q", c.models, got, c.want)
		}
	}
}

// TestLongerPrompts compares the prices of each length of prompt, whatever the feed's bands.
func TestLongerPrompts(t *testing.T) {
	for tiers, want := range map[string]string{
		`{"start":500,"price":10}`:                           " 2",
		`{"start":500,"price":4}`:                            " 3",
		`{"start":500,"price":3}`:                            "a price changes 3.33-fold 3",
		`{"start":900,"price":10}`:                           " 3",
		`{"start":900,"price":10},{"start":0,"price":1}`:     "a price changes 10-fold 8",
		`{"start":100,"price":20},{"start":900,"price":0.1}`: "a price changes 100-fold 9",
	} {
		text := strings.Replace(list, "write_1h: 10,", "cached: 5, write_1h: 10,", 1)
		d := differences(t, text, model("large", `{"input_mtok":{"base":5,"tiers":[`+tiers+
			`]},"output_mtok":{"base":30,"tiers":[{"start":500,"price":45}]}}`))[0]
		prices := 0
		d.VisitLongPrompts(func(string, float64, float64, float64) { prices++ })
		if got := fmt.Sprint(d.Refused, " ", prices); got != want {
			t.Errorf("%s: %s, want %s", tiers, got, want)
		}
	}
}

// TestNamesOfSeveralModels requires that the dearest of several models with a row's name sets its
// price.
func TestNamesOfSeveralModels(t *testing.T) {
	named := func(id, input string) string {
		return model(id, `{"input_mtok":`+input+`,"output_mtok":4},"match":{"equals":"small"}`)
	}
	for _, models := range []string{named("a", "2") + "," + named("b", "0.5"),
		named("a", "0.5") + "," + named("b", "2")} {
		all := slices.DeleteFunc(differences(t, list, models),
			func(d costs.FeedDifference) bool { return d.Row != "small" })
		if len(all) != 1 || all[0].After["input"] != 2 {
			t.Errorf("%s: %+v", models, all)
		}
	}
}

// TestPatternsInFeeds: no model of a feed has the name of a row for many models.
func TestPatternsInFeeds(t *testing.T) {
	models, _, err := costs.ParseFeed([]byte(`[{"id":"maker","models":[{"id":"small",
		"match":{"or":[{"equals":"tiny"},{"equals":"large*"}]},"prices":{"input_mtok":1}}]}]`),
		"", "maker")
	if err != nil || len(models) != 1 || !slices.Equal(models[0].Names, []string{"tiny"}) {
		t.Errorf("%+v, %v", models, err)
	}
}

// TestBadFeeds: the error of an unusable feed says why.
func TestBadFeeds(t *testing.T) {
	entry := `{"id":"a","prices":{"input_mtok":1,"output_mtok":1}}`
	for data, want := range map[string]string{
		"<!doctype html><title>404</title>": "it is not JSON",
		genAI[:200]:                         "it is not JSON",
		`{}`:                                "its format is not one of genai-prices, models.dev, litellm",
		`[{"id":5}]`:                        "it is not a feed of the format genai-prices",
		`[{"id":"maker","models":[{"id":"a","prices":{"input_mtok":{"tiers":[]},"output_mtok":1}}]}]`: "it " +
			"is not a feed of the format genai-prices",
		`[{"id":"maker","models":[{"id":"a","prices":{"input_mtok":{"base":1,"tiers":[{"start":9}]}}}]}]`: "it " +
			"is not a feed of the format genai-prices",
		`{"maker":{"models":{"a":{"cost":{"input":1,"output":1,"tiers":[{"input":2}]}}}}}`: "it is not a " +
			"feed of the format models.dev",
		`{"a":{"litellm_provider":"maker","input_cost_per_token":1,"output_cost_per_token":"1"}}`: "it is " +
			"not a feed of the format litellm",
		`[{"id":"makers","models":[]}]`:                           "it has no prices of maker (did you mean makers?)",
		`[{"id":"maker","models":[` + entry + `,` + entry + `]}]`: "a appears twice",
		`{"maker":{"models":{"a":{},"a":{}}}}`:                    "maker.models.a appears twice",
		`[{"id":"maker","models":[` + strings.Replace(entry, `"input_mtok":1`, `"input_mtok":-1`, 1) +
			`]}]`: "a: input is -1",
		// this would end the row, and add one for every model
		`[{"id":"maker","models":[{"id":"a","prices":[{"prices":{"input_mtok":1},"constraint":` +
			`{"start_date":"2027-01-01, source: page}]\n      '*': ` +
			`[{input: 0, output: 0"}}]}]}]`: "output: 0 is not a day such as 2026-12-01",
		`[{"id":"maker","models":[` + strings.Replace(entry, `"a"`, `"gpt-*"`, 1) +
			`]}]`: "it has no prices of maker",
		`[{"id":"maker","models":[` + strings.Replace(entry, `"a"`, `"`+strings.Repeat("a", 10<<20)+`"`,
			1) + `]}]`: "10485760 bytes long, 65536 at most",
	} {
		_, _, err := costs.ParseFeed([]byte(data), "", "maker")
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("%.60q: %v, want %s", data, err, want)
		}
	}
}
