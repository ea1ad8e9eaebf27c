package grammar_test

import (
	"testing"

	"quotabudget/internal/grammar"
)

// TestEditor replaces a, and appends c to the mapping that holds it.
func TestEditor(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"block":           {"m:\n  a: 1\nz: 2\n", "m:\n  a: 9\n  c: 3\nz: 2\n"},
		"CRLF":            {"m:\r\n  a: 1\r\nz: 2\r\n", "m:\r\n  a: 9\r\n  c: 3\nz: 2\r\n"},
		"byte order mark": {"\ufeffm:\n  a: 1\n", "\ufeffm:\n  a: 9\n  c: 3\n"},
		"quotes": {"m:\n  a: 'it''s'\n  b: {x: \"}\\\"\", y: ']'} # it's\nz: 2\n",
			"m:\n  a: 9\n  b: {x: \"}\\\"\", y: ']'} # it's\n  c: 3\nz: 2\n"},
		"apostrophe in brackets": {"m:\n  a: {x: [it's, 1], # }\n    y: b's}\nz: ['x']\n",
			"m:\n  a: 9\n  c: 3\nz: ['x']\n"},
		"alias at the end": {"l: &l {x: 1}\nm:\n  a: []\n  b: *l\nz: {y: 1}\n",
			"l: &l {x: 1}\nm:\n  a: 9\n  b: *l\n  c: 3\nz: {y: 1}\n"},
		"anchored value":  {"m:\n  a: &x 1\nz: *x\n", ""},
		"tagged value":    {"m:\n  a: !!int 1\n", ""},
		"tagged text":     {"m:\n  a: !!str '1'\n", ""},
		"lines of a text": {"m:\n  a: 1\n  b: |\n      x\n      y\n      z\nz: 2\n", ""},
		"folded text":     {"m:\n  a: 1\n  b: x\n      y\nz: 2\n", ""},
		"CR":              {"m:\r  a: 1\r", ""},
		"line separator":  {"k: \"x\u2028y\"\nm:\n  a: 1\n", ""},
		"next line":       {"k: \"x\u0085y\"\nm:\n  a: 1\n", ""},
		"UTF-16":          {"\xff\xfem\x00:\x00\n\x00 \x00a\x00:\x001\x00\n\x00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := grammar.Edit(c.text)
			got := ""
			if err == nil {
				m := grammar.Child(e.Top, "m")
				e.Replace(grammar.Child(m, "a"), "9")
				e.Append(m, "c: 3")
				got, err = e.Result()
			}
			if got != c.want {
				t.Errorf("got %q and %v, want %q", got, err, c.want)
			}
			if (err == nil) != (c.want != "") {
				t.Errorf("error %v", err)
			}
		})
	}
}
