package answer

import (
	"reflect"
	"strings"
	"testing"
)

// FuzzPlain holds what is decoded in one pass to what the parser makes of it key by key.
func FuzzPlain(f *testing.F) {
	for _, text := range []string{
		`{"a":1,"b":[{"c":null},"x:y",{}],"d":{"e":"\":\\"}}`, ` [] `, `null`, `-0`, `1e999`, ``,
		`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"b":1,"b":1}}`, `[{"a":1,"a":":"}]`,
		`{":":1,":":2}`, "{\"\xff\":1,\"\xfe\":2}", `{"a":1}{"b":2}`, `{"a":1} x`, `{"a" 1}`, `[1,]`,
		`"\ud800"`, strings.Repeat("[", 201) + strings.Repeat("]", 201),
		strings.Repeat("[", 202) + strings.Repeat("]", 202),
		strings.Repeat("[", 201) + "1" + strings.Repeat("]", 201),
		strings.Repeat(`{"a":`, 201) + "1" + strings.Repeat("}", 201),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := parser{}
		want, err := p.parse(data)
		got, ok := parsePlain(data)
		if ok && (err != nil || !reflect.DeepEqual(got, want)) {
			t.Fatalf("in one pass %v, %v; key by key %v, %v", got, ok, want, err)
		}
	})
}

// TestPlain: what is usual takes the one pass, whatever its texts hold.
func TestPlain(t *testing.T) {
	for _, text := range []string{`{"a":[{"b:":"\\\":"},{"b:":{}}]}`, ` [1, null] `, `"x"`} {
		if _, ok := parsePlain([]byte(text)); !ok {
			t.Errorf("%s is not decoded in one pass", text)
		}
	}
}
