package untrusted

import (
	"encoding/json"
	"testing"
)

func TestPaths(t *testing.T) {
	var doc any
	if err := json.Unmarshal([]byte(`{"a":{"b":[{"c":1.5},{"c":"x"},{"d":"y"}]},"n":null,"t":"text",
		"data":[1,2,3],"includes":{"users":[{},{}],"media":[{}],"one":{}},"big":1e15,
		"vast":1900000000000000001}`), &doc); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"a.b.0.c": "1.5", "a.b.1.c": "x", "t": "text",
		"big": "1000000000000000", "vast": "", "a.b.2.c": "", "a.b.3": "", "a.b.x": "",
		"a.b.-1": "", "n": "", "t.x": "", "": "", "a": ""} {
		if got, ok := FindText(doc, path); got != want || ok != (want != "") {
			t.Errorf("%s is %q, %v", path, got, ok)
		}
	}
	for path, want := range map[string]int{"data": 3, "includes.*": 4, "a.b.*.c": 2, "a": 1,
		"t": 1, "n": 0, "none": 0, "none.*": 0, "*": 8, "data.*": 3, "a.b.*": 3} {
		if got := Count(doc, path); got != want {
			t.Errorf("%d at %s, want %d", got, path, want)
		}
	}
	for path, want := range map[string]string{"a.b.*.d": "y", "a.b.*.c": "x", "t": "text",
		"data.*": "", "none.*.x": "", "a.b.1.c": "x"} {
		if got := FirstText(doc, path); got != want {
			t.Errorf("first of %s is %q", path, got)
		}
	}
}
