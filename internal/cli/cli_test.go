package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

func TestReport(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{&Coded{Code: 75}, ""},
		{errors.New("what is wrong"), "prog: what is wrong\n"},
		{Hint(errors.New("what is wrong"), "do %s", "this"),
			"prog: what is wrong\nhint: do this\n"},
		{fmt.Errorf("x: %w", quota.ErrKeyReused),
			"prog: x: idempotency key was used before\nhint: a key belongs to one charge: use another key\n"},
		{&config.Error{Problems: []config.Problem{{Where: "a", Line: 1, Text: "b"},
			{Where: "c", Text: "d"}}}, "prog: a:1: b\nprog: c: d\n"},
		{errors.New("GET /?key=AIzaSyCANARY0123456789abcdefghijklmnopq"),
			"prog: the error is not shown: it holds what looks like an API key\n"},
	} {
		var out bytes.Buffer
		if code := Report(&out, "prog", c.err); code != Code(c.err) || out.String() != c.want {
			t.Errorf("%v: %d %q, want %q", c.err, code, out.String(), c.want)
		}
	}
}

// TestReportJSON: one line like those of the log, whatever the error has.
func TestReportJSON(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{&Coded{Code: 75}, ""},
		{errors.New("what is wrong"), `"level":"ERROR","msg":"what is wrong"}`},
		{Hint(errors.New("what is \"wrong\""), "do %s", "this"),
			`"level":"ERROR","msg":"what is \"wrong\"","hint":"do this"}`},
		{&config.Error{Problems: []config.Problem{{Where: "a", Line: 1, Text: "b"},
			{Where: "c", Text: "d"}}},
			`"level":"ERROR","msg":"a:1: b\nc: d"}`},
		{errors.New("GET /?key=AIzaSyCANARY0123456789abcdefghijklmnopq"),
			`"level":"ERROR","msg":"the error is not shown: it holds what looks like an API key"}`},
	} {
		var out bytes.Buffer
		if code := reportJSON(&out, c.err); code != Code(c.err) {
			t.Errorf("%v: %d", c.err, code)
		}
		_, rest, _ := strings.Cut(out.String(), `",`) // behind the time
		if got := strings.TrimSuffix(rest, "\n"); got != c.want || c.want != "" &&
			!strings.HasPrefix(out.String(), `{"time":"`) {
			t.Errorf("%v: %q, want %q", c.err, out.String(), c.want)
		}
	}
}

// TestYAMLForOlderReaders: what YAML 1.1 takes for something else than a string is quoted, as a key
// too; nothing else is.
func TestYAMLForOlderReaders(t *testing.T) {
	for _, text := range []string{"NO", "no", "No", "on", "Off", "y", "N", "yes", "true", "FALSE",
		"~", "null", "", "=", "<<", "1:30", "-1:30:00",
		"20:30.5", "12", "007", "0o7", "1_000", "1,000", "0x1F", "0b11", "1e3", "1.", ".5", "-.inf",
		".NaN", "2026-11-21", "2026-11-21T15:02:14Z"} {
		for _, v := range []any{map[string]string{"k": text}, map[string]string{text: "v"}} {
			var out bytes.Buffer
			if err := (&Common{Output: "yaml"}).Print(&out, v, nil); err != nil ||
				!strings.Contains(out.String(), `"`+text+`"`) {
				t.Errorf("%q: %s %v", text, out.String(), err)
			}
		}
	}
	for _, text := range []string{"US", "nothing", "once", "24h", "5m0s", "day America/Los_Angeles",
		"youtube.videos.list", "127.0.0.1:9310",
		"default.06fmjq2kx4a9bc", "6ag3n4eawe6szj", "5%"} {
		var out bytes.Buffer
		if err := (&Common{Output: "yaml"}).Print(&out, map[string]string{"k": text},
			nil); err != nil || out.String() != "k: "+text+"\n" {
			t.Errorf("%q: %s %v", text, out.String(), err)
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
	var out bytes.Buffer
	if err := (&Common{Output: "yaml"}).Print(&out, v, nil); err != nil {
		t.Fatal(err)
	}
	want := "b: \"yes: <&> \\\"no\\\"\\n\\L\\U0001F3AC\"\na:\n  default: 1\nc: null\nd: []\ne:\n  k: \"true\"\n  x: \"2026-11-21\"\n  z: \"007\"\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	if err := (&Common{Output: "json"}).Print(&out, v, nil); err != nil ||
		strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), "<&>") {
		t.Error(out.String(), err)
	}
}

func TestAbsent(t *testing.T) {
	l, err := OpenLedger(t.Context(), "redis://127.0.0.1:1/0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Charge(t.Context(), quota.Charge{}); !errors.Is(err, quota.ErrUnreachable) {
		t.Error(err)
	}
	if _, err := OpenLedger(t.Context(), "nope:"); !errors.Is(err, quota.ErrMalformed) {
		t.Error(err)
	}
}
