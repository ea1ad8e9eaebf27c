package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"quotabudget/internal/config"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
	"quotabudget/internal/words"
)

func TestCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything"), 1},
		{context.Canceled, 1},
		{quota.ErrNoReservation, 64},
		{quota.ErrKeyReused, 64},
		{Usagef("x"), 64},
		{quota.ErrMalformed, 64},
		{quota.ErrUnpriced, 64},
		{quota.ErrNoBucket, 64},
		{quota.ErrReservationShort, 64},
		{&quota.CostExceedsLimitError{}, 64},
		{quota.ErrUnreachable, 69},
		{quota.ErrLedgerUnusable, 69},
		{sqlite.ErrNewer, 69},
		{sqlite.ErrBusy, 69},
		{sqlite.ErrGone, 69},
		{&quota.DeniedError{}, 75},
		{&Coded{ExitRefused, errors.New("bad key")}, 77},
		{&config.Error{}, 78},
	} {
		if got := Code(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
		if c.err == nil {
			continue
		}
		if got := Code(Hint(fmt.Errorf("wrapped: %w", c.err), "x")); got != c.want {
			t.Errorf("wrapped %v: %d, want %d", c.err, got, c.want)
		}
	}
}

// TestReport: an error is reported with the same message in lines for people and as one log line
// for programs.
func TestReport(t *testing.T) {
	for _, c := range []struct {
		err        error
		text, json string
	}{
		{nil, "", ""},
		{&Coded{Code: 75}, "", ""},
		{errors.New(`what is "wrong"`), "prog: what is \"wrong\"\n",
			`"level":"ERROR","msg":"what is \"wrong\""}`},
		{&fs.PathError{Op: "mkdir", Path: "/var/lib/quota", Err: fs.ErrPermission},
			"prog: mkdir /var/lib/quota: permission denied\n" +
				"hint: make the folder: sudo install -d -o \"$USER\" -m 700 /var/lib/quota\n",
			`"level":"ERROR","msg":"mkdir /var/lib/quota: permission denied",` +
				`"hint":"make the folder: sudo install -d -o \"$USER\" -m 700 /var/lib/quota"}`},
		{Hint(errors.New("what is wrong"), "do %s", "this"), "prog: what is wrong\nhint: do this\n",
			`"level":"ERROR","msg":"what is wrong","hint":"do this"}`},
		{fmt.Errorf("x: %w", quota.ErrKeyReused), "prog: x: idempotency key was used before\n" +
			"hint: a key belongs to one charge: use another key\n",
			`"level":"ERROR","msg":"x: idempotency key was used before",` +
				`"hint":"a key belongs to one charge: use another key"}`},
		{&config.Error{Problems: []config.Problem{{Where: "a", Line: 1, Text: "b"}, {Where: "c",
			Text: "d"}}}, "prog: a:1: b\nprog: c: d\n", `"level":"ERROR","msg":"a:1: b\nc: d"}`},
		{errors.New("GET /?key=AIzaSyCANARY0123456789abcdefghijklmnopq"),
			"prog: the error is not shown: it holds what looks like an API key\n",
			`"level":"ERROR","msg":"the error is not shown: it holds what looks like an API key"}`},
	} {
		var text, line bytes.Buffer
		code, again := Report(&text, "prog", c.err), reportJSON(&line, c.err)
		if code != Code(c.err) || again != code || text.String() != c.text {
			t.Errorf("%v: %d, %d, %q, want %q", c.err, code, again, text.String(), c.text)
		}
		begin, remaining, _ := strings.Cut(line.String(), `",`) // after the time
		if strings.TrimSuffix(remaining, "\n") != c.json ||
			c.json != "" && !strings.HasPrefix(begin, `{"time":"`) {
			t.Errorf("%v: %q, want %q", c.err, line.String(), c.json)
		}
	}
}

// written returns v as YAML or JSON.
func written(t *testing.T, form string, v any) string {
	t.Helper()
	var out bytes.Buffer
	if err := (&Common{Output: form, Stdout: &out}).Print(v, nil); err != nil {
		t.Errorf("%q as %s: %v", v, form, err)
	}
	return out.String()
}

// TestYAMLForOlderReaders: only strings that YAML 1.1 would read as another type are quoted, also
// as keys.
func TestYAMLForOlderReaders(t *testing.T) {
	for _, text := range []string{"NO", "no", "No", "on", "Off", "y", "N", "yes", "true", "FALSE",
		"~", "null", "", "=", "<<", "1:30", "-1:30:00", "20:30.5", "12", "007", "0o7", "1_000",
		"1,000", "0x1F", "0b11", "1e3", "1.", ".5", "-.inf", ".NaN", "2026-11-21",
		"2026-11-21T15:02:14Z"} {
		for _, v := range []any{map[string]string{"k": text}, map[string]string{text: "v"}} {
			if got := written(t, "yaml", v); !strings.Contains(got, `"`+text+`"`) {
				t.Errorf("%q: %s", text, got)
			}
		}
	}
	for _, text := range []string{"US", "nothing", "once", "24h", "5m0s", "day America/Los_Angeles",
		"youtube.videos.list", "127.0.0.1:9310", "default.06fmjq2kx4a9bc", "6ag3n4eawe6szj", "5%"} {
		if got := written(t, "yaml", map[string]string{"k": text}); got != "k: "+text+"\n" {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestYAMLHasTheKeysOfJSON(t *testing.T) {
	v := struct {
		B string            `json:"b"`
		A map[string]int64  `json:"a"`
		C *string           `json:"c"`
		D []int             `json:"d"`
		E map[string]string `json:"e"`
	}{"yes: <&> \"no\"\n\u2028🎬", map[string]int64{"default": 1}, nil, []int{},
		map[string]string{"x": "2026-11-21", "k": "true", "z": "007"}}
	want := `b: "yes: <&> \"no\"\n\L\U0001F3AC"
a:
  default: 1
c: null
d: []
e:
  k: "true"
  x: "2026-11-21"
  z: "007"
`
	if got := written(t, "yaml", v); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got := written(t, "json", v)
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, "<&>") {
		t.Error(got)
	}
}

// hostile lists texts that control a terminal if a program prints them.
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

// TestOutputIsQuiet: JSON and YAML of any text contain no terminal controls, and decode to the same
// text.
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

// TestReportIsQuiet: errors, hints and log lines with outside text contain no terminal controls.
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

// TestInterrupted: if a signal ends a command, its error names the signal and keeps the hint. It
// keeps an exit code, and what else went wrong.
func TestInterrupted(t *testing.T) {
	canceled := context.Canceled
	for _, tc := range []struct {
		name string
		err  error
		code int
		want string
	}{
		{"hint", Hint(fmt.Errorf("ledger not called: %w", canceled), "run it %s", "again"), 1,
			"prog: interrupt signal received\nhint: run it again\n"},
		{"code", &Coded{Code: 69, Err: fmt.Errorf("get: %w", canceled)}, 69,
			"prog: get: context canceled\n"},
		{"joined to nothing", errors.Join(fmt.Errorf("open: %w", canceled), nil), 1,
			"prog: interrupt signal received\n"},
		{"joined", errors.Join(canceled, errors.New("disk full")), 1,
			"prog: context canceled\nprog: disk full\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			root := &cobra.Command{Use: "prog", RunE: func(*cobra.Command, []string) error {
				cancel(errors.New("interrupt signal received"))
				return tc.err
			}}
			var out bytes.Buffer
			code := (&Common{Stderr: &out}).Execute(ctx, root, nil)
			if code != tc.code || out.String() != tc.want {
				t.Errorf("exit code %d: %q, want %d: %q", code, out.String(), tc.code, tc.want)
			}
		})
	}
}

// TestAwaitedLedger: a program that starts while the ledger is unreachable uses it as soon as it
// can be reached.
func TestAwaitedLedger(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	s.Kill()
	l, err := OpenLedger(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Time(t.Context()); !errors.Is(err, quota.ErrUnreachable) {
		t.Errorf("a dead server: %v", err)
	}
	if _, err := OpenLedger(t.Context(), "nope:"); !errors.Is(err, quota.ErrMalformed) {
		t.Error(err)
	}
	s.Restart(t)
	l.Store.(*awaited).tried = time.Time{} // a second has passed
	if _, err := l.Time(t.Context()); err != nil {
		t.Errorf("the server is back: %v", err)
	}
}
