package costs

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"quotabudget/internal/quota"
)

func scopeOf(kind scopeKind) scope {
	return scope{Kind: kind, Facts: []string{"model"}, Found: []string{"detail"},
		Tables: map[string]PriceTable{
			"price": {Rows: []Row{{Key: "*", Number: 15}, {Key: "small*", Number: 1},
				{Key: "small-2", Number: 0.25}}},
			"class": {Words: true, Rows: []Row{{Key: "small*", Word: "small"}}},
		}}
}

func bind(text string, scope scope, result resultType) (*formula, error) {
	f := &formula{Text: text}
	f.Bind(scope, result)
	return f, f.Check()
}

// envOf returns a request with a body.
func envOf(t testing.TB, body string) variables {
	t.Helper()
	var doc any
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatal(err)
	}
	return variables{"body": doc, "body_bytes": len(body),
		"answer": doc, "answer_bytes": len(body),
		"usage": doc, "item": doc, "model": "small-2", "method": "a.b", "status": 200,
		"query":  map[string]string{"origins": "a|b|c"},
		"path":   map[string]string{"id": "7"},
		"header": func(name string) string { return "h-" + name },
		"count":  func(path string) any { return float64(len(path)) },
		"held":   map[string]float64{"input": 40},
		"p50":    50.0, "p90": 90.0, "p95": math.Inf(1), "p99": 99.0}
}

// TestUnits: an expression gives units, or an error that contains the text.
func TestUnits(t *testing.T) {
	const body = `{"max":1000,"n":2.5,"list":[{"w":1},{"w":2}],"deep":{"a":{"b":7}},"text":"abc",` +
		`"null":null,"no":-3,"big":1e300}`
	for text, want := range map[string]string{
		"3": "3", "len(body)": fmt.Sprint(len(body)), "body.max * 2": "2000", "body.n": "3",
		"body.deep.a.b": "7", "body.none ?? 5": "5", "body.none.of.this ?? 5": "5",
		"body.null ?? body.max": "1000", "(body.a ?? 0) + (body.b ?? 0) + 1": "1",
		"len(body.list)": "2", "sum(body.list, .w)": "3", "sum(body.list, #.w * price(model))": "1",
		`body["deep"]["a"]["b"]`: "7", "body.list[1].w": "2",
		`len(split(query.origins, "|"))`: "3", `len(path.id)`: "1", `len(header("x"))`: "3",
		`count("data")`: "4", "min(body.max, p95)": "1000", "min(body.max, p50, 70)": "50",
		"price(model) * 10": "3", `price("SMALL-1")`: "1", `price("other")`: "15",
		`class(model) == "small" ? 4 : 8`: "4", "0.1 * 3 * 10": "3", "0.25 * 5": "2",
		`len(filter(body.list, .w > 1))`: "1", `max(map(split("small-2,x", ","), price(#)))`: "15",
		`body.text contains "b" ? 1 : 0`: "1", "0": "0",
		`graphql_points({"query": "{a(first:100){b(first:100){c(first:1){id}}}}"})`: "101",

		"body.none": "body.none is missing", "body.none.deep + body.max": "body.none.deep is missing",
		"body.a + body.deep.c + (body.d ?? 0)": "body.a, body.deep.c is missing",
		"body.no":                              "gives -3: units cannot be negative",
		"body.max - 2000":                      "gives -1000: units cannot be negative",
		"body.text":                            "body.text", "body.max / 0": "finite",
		"0 / (body.max - 1000)": "finite", "body.big": "at most 1000000000000 units",
		"body.big * body.big": "finite", "p95": "finite",
		`int(header("x"))`: "int", `price(body.max)`: "not a text",
		"body.list": "body.list", "sum(body.max, #)": "body.max",
		`graphql_points(body)`: "its body has no query",
	} {
		f, err := bind(text, scopeOf(scopeHold), resultNumber)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := f.Units(envOf(t, body))
		_, failing := strconv.ParseInt(want, 10, 64) // want is then a part of the error
		if (err == nil) != (failing == nil) || err == nil && fmt.Sprint(got) != want ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %d, %v; want %s", text, got, err, want)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct {
		kind       scopeKind
		text, want string
	}{
		{scopeRequest, "bodi.max", "unknown name bodi"},
		{scopeRequest, "p95", "unknown name p95"},
		{scopeRequest, "answer.x", "unknown name answer"},
		{scopeAnswer, "body.x", "unknown name body"},
		{scopeAnswer, "p95", "unknown name p95"},
		{scopeItem, "status", "unknown name status"},
		{scopeRequest, `"ten"`, "expected float64, but got string"},
		{scopeRequest, "model", "expected float64, but got string"},
		{scopeRequest, "true", "expected float64, but got bool"},
		{scopeRequest, `class("big")`, "expected float64, but got string"},
		{scopeRequest, "body.a +", "unexpected token EOF"},
		{scopeRequest, "rate(model)", "unknown name rate"},
		{scopeRequest, "distinct(modell)", "unknown name modell"},
		{scopeRequest, "price(answer.model)", "unknown name answer"},
		{scopeAnswer, "price(usag.x)", "unknown name usag"},
		{scopeRequest, "header(5)", "cannot use"},
		{scopeRequest, `now().Unix()`, "now"},
		{scopeRequest, `body.x matches "(a+)+" ? 1 : 0`, "operator matches is not available"},
		{scopeRequest, `len(1..1000000000)`, "operator .. is not available"},
		{scopeRequest, `2 ** 10`, "operator ** is not available"},
		{scopeRequest, `let x = body.a; x`, "let is not available"},
		{scopeRequest, `sum(body.a, len(body.b))`, "body is used inside a predicate"},
		{scopeRequest, `sum(body.a, len(split(header("x"), ",")))`,
			"header is used inside a predicate"},
		{scopeRequest, `repeat("a", 1000000000)`, "repeat"},
		{scopeRequest, strings.Repeat("1+", 400) + "1", "node"},
		{scopeRequest, strings.Repeat("1+", 1400) + "1", "must have at most 2000"},
		{scopeRequest, "", "unexpected token EOF"},
	} {
		if _, err := bind(c.text, scopeOf(c.kind), resultNumber); err == nil ||
			!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40s: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestConditionsAndTexts(t *testing.T) {
	e := envOf(t, `{"error":{"code":"spent","n":5}}`)
	e["reasons"] = []reason{{"a", ""}, {"KEY_BAD", "global"}}
	e["says"] = func(words ...string) bool { return slices.Contains(words, "a") }
	e["only"] = func(words ...string) bool { return false }
	e["message"], e["cut"], e["detail"] = "10 per day", false, map[string]any{"unit": "1/d/x"}
	for text, want := range map[string]bool{
		`answer.error.code == "spent"`: true, `answer.no.code == "spent"`: false,
		`status in [200, 403]`: true, `status >= 400`: false,
		`says("b", "a") and message contains "per day"`:                true,
		`any(reasons, .domain == "global" and .reason startsWith "K")`: true,
		`detail.unit startsWith "1/d/"`:                                true,
		`detail.no startsWith "1"`:                                     false,
		`detail.no == nil`:                                             true,
		`answer.error.n startsWith "5"`:                                false,
		`not cut`:                                                      true,
		`answer.error.code in ["spent", "x"] and not only("a")`:        true,
	} {
		f, err := bind(text, scopeOf(scopeRefused), resultCondition)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := f.Holds(e); got != want {
			t.Errorf("%s is %v", text, got)
		}
	}
	for text, want := range map[string]string{
		"body.error.code": "spent", "body.error.n": "5", "body.no.x": "", "path.id": "7",
		"class(model)": "small", "body.error": "an error", `query.none`: "", "body.a ?? body.b": "",
		"len(body.no)": "", "class(body.error.n)": "an error", "[1]": "an error",
	} {
		f, err := bind(text, scopeOf(scopeRequest), resultText)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got, err := f.String(e); got != want && (err == nil || want != "an error") {
			t.Errorf("%s is %q, %v", text, got, err)
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"len(body)/3", "min(body.max, p95)", "sum(body.list, .w)",
		"usage.a ?? 0", `price(body["x"].y) * 2`, `body?.a?.b`, `max(map(body.l, #.x))`} {
		f.Add(seed, `{"max":5,"list":[{"w":1}]}`)
	}
	f.Fuzz(func(t *testing.T, text, body string) {
		if !json.Valid([]byte(body)) {
			return
		}
		number, err := bind(text, scopeOf(scopeHold), resultNumber)
		if err != nil {
			return
		}
		if units, err := number.Units(envOf(t, body)); err == nil &&
			(units < 0 || units > quota.MaxUnits) {
			t.Errorf("%s of %s is %d", text, body, units)
		}
	})
}
