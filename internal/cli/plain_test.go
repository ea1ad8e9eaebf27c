package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"quotabudget/internal/words"

	"go.yaml.in/yaml/v3"
)

// hostile lists texts by which an upstream or a job's name may control a terminal.
var hostile = []string{
	"\x1b[31mred", "\x1b]8;;http://evil\x07link\x1b]8;;\x07", "\x1b]52;c;Y3VybA==\x07", "a\rb",
	"a\nb", "a\tb", "\x00", "\x7f", "\u009b31m", "\u0085next", "\u202egnp.exe", "ab\u200dcd",
	"\u2066isolate\u2069", "\u200fmark", "zero\u200bwidth", "\ufefffirst", "plain",
	"line\u2028sep\u2029par", "soft\u00adhyphen", "tag\U000e0041\U000e0001",
	"not\ufffe\uffff\U0001ffff", "bad\xff\xfebytes",
}

// quiet reports whether text is safe for a terminal.
func quiet(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		isTag := r >= 0xe0020 && r <= 0xe007f
		return unicode.IsControl(r) && r != '\n' || !words.Joins(r) && !isTag && words.Hidden(r)
	}) < 0
}

// TestOutputIsQuiet: for any text, JSON and YAML contain nothing that a terminal obeys, and decode
// to the same text.
func TestOutputIsQuiet(t *testing.T) {
	for _, text := range hostile {
		v := map[string]any{"k": text, text: []string{text, "x" + text + "y"}}
		for _, form := range []string{"json", "yaml"} {
			out := written(t, form, v)
			if !quiet(out) {
				t.Errorf("%q as %s: %q", text, form, out)
			}
			var back struct{ K string }
			want := strings.ReplaceAll(text, "\xff\xfe", "\ufffd\ufffd")
			read := map[string]func([]byte, any) error{"json": json.Unmarshal,
				"yaml": yaml.Unmarshal}
			if err := read[form]([]byte(out), &back); err != nil || back.K != want {
				t.Errorf("%q as %s is read as %q, %v\n%s", text, form, back.K, err, out)
			}
		}
	}
}

// TestYAMLOfEveryCharacter: every character survives encoding and decoding.
func TestYAMLOfEveryCharacter(t *testing.T) {
	var all []string
	for r := rune(0); r <= unicode.MaxRune; r++ {
		switch r {
		case 0xd800:
			r = 0xe000 // after the surrogates
		case 0x30000:
			r = 0xe0000
		case 0xf0000:
			r = 0x10fff0
		}
		if n := len(all); n == 0 || len(all[n-1]) > 1000 {
			all = append(all, "")
		}
		all[len(all)-1] += string(r)
	}
	out := written(t, "yaml", all)
	var back []string
	if err := yaml.Unmarshal([]byte(out), &back); err != nil || len(back) != len(all) {
		t.Fatalf("%d strings, %v", len(back), err)
	}
	for i := range all {
		if back[i] != all[i] {
			t.Errorf("%q\nis read as\n%q", all[i], back[i])
		}
	}
	if !quiet(out) {
		t.Error("not quiet")
	}
}

// TestReportIsQuiet: errors, hints and log lines also contain outside text.
func TestReportIsQuiet(t *testing.T) {
	for _, text := range hostile {
		var out bytes.Buffer
		Report(&out, "prog", Hint(fmt.Errorf("the upstream says: %s", text), "not %s", text))
		reportJSON(&out, Hint(errors.New(text), "%s", text))
		for _, form := range []string{"text", "json"} {
			log := (&Common{LogFormat: form, Stderr: &out}).Logger()
			log.Warn(text, "error", errors.New(text), text, text)
		}
		if !quiet(out.String()) {
			t.Errorf("%q: %q", text, out.String())
		}
	}
}
