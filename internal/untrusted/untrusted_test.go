package untrusted

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestDecode: JSON is decoded, or the error says what is wrong with it and where.
func TestDecode(t *testing.T) {
	bounds := Bounds{Values: 20, Depth: 5, Items: 10, Text: 8}
	for text, want := range map[string]string{
		`{"a":[1,{"b":null}],"c":"x"}`: `{"a":[1,{"b":null}],"c":"x"}`,
		`[]`:                           `[]`,
		` 5e-1 `:                       `0.5`,
		`true`:                         `true`,
		"\"\xff\"":                     `"�"`,
		"{\"a\":1}\n{\"a\":2}\n":       `[{"a":1},{"a":2}]`,
		`{"a":1}{}`:                    `[{"a":1},{}]`,

		`{"a":1,"a":2}`:                                     "a appears twice",
		`{"a":1,"\u0061":2}`:                                "a appears twice",
		`[{"x":{"a":1,"a":1}}]`:                             "0.x.a appears twice",
		`{"a":{"b":"123456789"}}`:                           "a.b is 9 bytes long, 8 at most",
		`{"a":1,"123456789":2}`:                             "is 9 bytes long, 8 at most",
		`{"a":[0,0,0,0,0,0,0,0,0,0,0]}`:                     "a.10 is in a list of more than 10 items",
		"[[0,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0],[0,0,0,0]]":   "is past the maximum of 20 values",
		strings.Repeat("[", 300) + strings.Repeat("]", 300): "nested more than 5 deep",

		``: "unexpected EOF", `{"a":1e999}`: "unexpected EOF", `{"a":`: "unexpected EOF", `{"a" 1}`: "unexpected EOF",
		`{`: "unexpected EOF", `[1`: "unexpected EOF", `{"a":1]`: "unexpected EOF",
		`{"a":1} and more`: "unexpected EOF",
	} {
		value, err := Decode([]byte(text), bounds)
		got, _ := json.Marshal(value)
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != want && !(err != nil && strings.HasSuffix(string(got), want)) {
			t.Errorf("%.40s: %s, want %s", text, got, want)
		}
	}
}
