package grammar

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"
)

const testSchema = `{
  "type": "object", "additionalProperties": false, "required": ["name"],
  "properties": {
    "name": {"type": ["string", "number", "boolean"], "format": "short"},
    "units": {"type": "integer", "minimum": 1, "maximum": 1000},
    "share": {"type": "number", "minimum": 0},
    "on": {"type": "boolean"},
    "mode": {"enum": ["enforce", "observe"]},
    "list": {"type": "array", "minItems": 1, "items": {"$ref": "#"}},
    "words": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
    "pace": {"oneOf": [{"const": "even"}, {"type": "object", "additionalProperties": false,
      "properties": {"slack": {"type": "string", "pattern": "%$", "errorMessage": "must be 10%"}}}],
      "errorMessage": "must be even, or {slack: 10%}"},
    "by": {"type": "object", "patternProperties": {"^[a-z]+$": {"type": "integer"}},
      "additionalProperties": false, "minProperties": 1, "errorMessage": "write {a: 1}"}
  }
}`

type testFile struct {
	Name  string
	Units int64
	Share float64
	On    bool
	Mode  string
	List  []testFile
	Words []string
	By    map[string]int64
}

func decode(text string) (testFile, []Problem) {
	schema := NewSchema([]byte(testSchema), "", Formats{"short": func(text string) error {
		if len(text) > 10 {
			return fmt.Errorf("must be short")
		}
		return nil
	}})
	f, problem := Parse("", []byte(text))
	if problem != nil {
		return testFile{}, []Problem{*problem}
	}
	var file testFile
	f.Decode(schema, &file)
	return file, f.Problems()
}

// TestDecode reads files that people and their editors write.
func TestDecode(t *testing.T) {
	units := utf16.Encode([]rune("\ufeffname: a\nunits: 5\n"))
	var wide strings.Builder
	for _, u := range units {
		wide.WriteString(string([]byte{byte(u), byte(u >> 8)}))
	}
	for text, want := range map[string]testFile{
		"name: a\nunits: 5":                      {Name: "a", Units: 5},
		"\ufeffname: a\r\nunits: 5\r\n":          {Name: "a", Units: 5},
		wide.String():                            {Name: "a", Units: 5},
		"name: NO":                               {Name: "NO"},
		"name: 0017":                             {Name: "0017"},
		"name: 2026-01-01":                       {Name: "2026-01-01"},
		"name: 7.50":                             {Name: "7.50"},
		"name: true":                             {Name: "true"},
		"name: a\nunits: 1_000\nshare: 1e-3":     {Name: "a", Units: 1000, Share: 0.001},
		"name: a\nunits: 2.0\non: True":          {Name: "a", Units: 2, On: true},
		"name: a\nlist: [{name: b}, {name: c}]":  {Name: "a", List: []testFile{{Name: "b"}, {Name: "c"}}},
		"name: &n a\nlist: [&l {name: *n}, *l]":  {Name: "a", List: []testFile{{Name: "a"}, {Name: "a"}}},
		"name: a\nby: {on: 1, y: 2}":             {Name: "a", By: map[string]int64{"on": 1, "y": 2}},
		"name: a\npace: even":                    {Name: "a"},
		"name: a\nwords: [x, '']\nmode: observe": {Name: "a", Words: []string{"x", ""}, Mode: "observe"},
	} {
		got, problems := decode(text)
		if !reflect.DeepEqual(got, want) || problems != nil {
			t.Errorf("%q: %+v, %v", text, got, problems)
		}
	}
}

// TestProblems checks one line for each kind of problem.
func TestProblems(t *testing.T) {
	bomb := "name: a\nlist:\n- &a0 {name: b}\n"
	for i := range 30 {
		bomb += fmt.Sprintf("- &a%d {name: c, list: [*a%d, *a%[2]d]}\n", i+1, i)
	}
	const wholeNumber = "line 2: units: must be a whole number in decimal digits, without quotes, such as 10000"
	for _, c := range []struct{ text, want string }{
		{"nam: a", `line 1: name is missing|line 1: unknown key "nam" (did you mean name?)`},
		{"name: a\nlist: [{nmae: b}]",
			`line 2: list: name is missing|line 2: list: unknown key "nmae" (did you mean name?)`},
		{"name: a\nname: b", "line 2: name is already set on line 1"},
		{"name: a\nb: \xe9",
			"line 2: incomplete UTF-8 octet sequence: save the file as plain UTF-8 text"},
		{"name: a\n\x00",
			"line 2: control characters are not allowed: save the file as plain UTF-8 text"},
		{"%YAML 1.2\n---\nname: a", "unsupported YAML version: delete the %YAML line"},
		{"name: a\n? [x]\n: y", "line 2: a key must be a word"},
		{"name: a\n<<: {units: 1}", "line 2: merge keys (<<) are not supported: repeat the keys here"},
		{"name: a\nmode: observ", "line 2: mode: must be enforce or observe (did you mean observe?)"},
		{"name: a\nunits: 0", "line 2: units: must be 1 to 1000"},
		{"name: a\nunits: 99999999999999999999999999", "line 2: units: must be 1 to 1000"},
		{"name: a\nunits: 1e400", wholeNumber},
		{"name: a\nunits: 1.5", "line 2: units: must be a whole number"},
		{"name: a\nunits: '5'", wholeNumber},
		{"name: a\nunits: 010", wholeNumber},
		{"name: a\nunits: 0x1F", wholeNumber},
		{"name: a\nshare: .inf", "line 2: share: must be a number in decimal digits, without quotes, such as 10000"},
		{"name: a\nshare: -0.1", "line 2: share: must be at least 0"},
		{"name: a\nshare: x", "line 2: share: must be a number in decimal digits, without quotes, such as 10000"},
		{"name: a\non: maybe", "line 2: on: must be true or false"},
		{"name: a\non:", "line 2: on: is empty: write true or false"},
		{"name: a\nwords: x", "line 2: words: must be a list, such as [a, b]"},
		{"name: a\nwords: [a, b, c]", "line 2: words: must have at most 2 items"},
		{"name: a\nwords: [[a], b]", "line 2: words: must be text (in quotes)"},
		{"name: a\nlist: []", "line 2: list: the list is empty"},
		{"name: {a: b}", "line 1: name: must be text (in quotes)"},
		{"name: elevenchars", "line 1: name: must be short"},
		{"name: !!binary aGk=", "line 1: name: the tag !!binary cannot be used"},
		{"name: a\nby: !!set {a: 1}", "line 2: by: the tag !!set cannot be used"},
		{"name: a\npace: odd", "line 2: pace: must be even, or {slack: 10%}"},
		{"name: a\npace: {slack: 10}", "line 2: pace.slack: must be 10%"},
		{"name: a\npace: {slak: 10%}", `line 2: pace: unknown key "slak" (did you mean slack?)`},
		{"name: a\nby: {A: 1}", `line 2: by: "A": write {a: 1}`},
		{"name: a\nby: {a: b}", "line 2: by.a: must be a whole number in decimal digits, without quotes, such as 10000"},
		{"name: a\nlist: &l [*l]", "line 2: list: an alias (*) of a list or mapping that contains it"},
		{"name: *a", "an alias (*) of nothing: put the text into quotes"},
		{"name: a\n---\nname: b", "line 2: a second YAML document: write one"},
		{"name: a\nlist:\n\t- x", "line 3: a tab: YAML is indented with spaces"},
		{"{units: 0, zz: 1, name: a, on: maybe, aa: 2, share: -1, words: x}", // always in one order
			`line 1: unknown key "aa"|line 1: unknown key "zz"|` +
				"line 1: on: must be true or false|line 1: share: must be at least 0|" +
				"line 1: units: must be 1 to 1000|line 1: words: must be a list, such as [a, b]"},
		{bomb, "more than 200000 items in all lists together"},
	} {
		_, problems := decode(c.text)
		var lines []string
		for _, p := range problems {
			lines = append(lines, p.String())
		}
		if got := strings.Join(lines, "|"); got != c.want &&
			!(c.text == bomb && len(lines) == 1 && strings.HasSuffix(got, c.want)) {
			t.Errorf("%.200q:\n%s\nwant: %s", c.text, got, c.want)
		}
	}
}

// TestPlace: a check reports at the line of a value, unless the schema has already refused the
// value.
func TestPlace(t *testing.T) {
	f, problem := Parse("", []byte("name: a\nunits: x\nlist:\n- name: b\n- name: c\n"))
	if problem != nil {
		t.Fatal(problem)
	}
	var file testFile
	f.Decode(NewSchema([]byte(testSchema), "", Formats{}), &file)
	top := f.Top()
	top.Key("units").Add("is odd")
	top.Key("list").Item(1).Key("name").Add("%s is odd", "c")
	top.Key("list").Item(1).Key("units").Add("is odd")
	top.Key("list").Item(5).Add("is odd")
	want := "[line 2: units: must be a whole number in decimal digits, without quotes, such as 10000 line 3: list: is odd " +
		"line 5: list.name: c is odd line 5: list.units: is odd]"
	if got := fmt.Sprint(f.Problems()); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if !top.Has("list") || top.Has("mode") || len(top.Keys()) != 3 {
		t.Errorf("keys %v", top.Keys())
	}
}
