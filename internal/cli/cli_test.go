package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"quotabudget/internal/config"
	"quotabudget/internal/quota"
	"quotabudget/internal/sqlite"
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

// TestReport: the same message for people and, in one line like those of the log, for programs.
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
		begin, rest, _ := strings.Cut(line.String(), `",`) // after the time
		if strings.TrimSuffix(rest, "\n") != c.json ||
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

// TestYAMLForOlderReaders: strings that YAML 1.1 would read as another type are quoted, as keys
// too, and no others are.
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
