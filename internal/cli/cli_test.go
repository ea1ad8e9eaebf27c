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
		{quota.ErrNoReservation, 1},
		{quota.ErrKeyReused, 1},
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
		{Hint(errors.New("what is wrong"), "do %s", "this"), "prog: what is wrong\nhint: do this\n"},
		{fmt.Errorf("x: %w", quota.ErrKeyReused), "prog: x: idempotency key was used before\nhint: one idempotency key stands for one charge: take another\n"},
		{&config.Error{Problems: []config.Problem{{Where: "a", Line: 1, Text: "b"}, {Where: "c", Text: "d"}}}, "prog: a:1: b\nprog: c: d\n"},
		{errors.New("GET /?key=AIzaSyCANARY0123456789abcdefghijklmnopq"), "prog: the error is not shown: it holds what looks like an API key\n"},
	} {
		var out bytes.Buffer
		if code := Report(&out, "prog", c.err); code != Code(c.err) || out.String() != c.want {
			t.Errorf("%v: %d %q, want %q", c.err, code, out.String(), c.want)
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
	}{"yes: <&> \"no\"\n\u2028🎬", map[string]int64{"default": 1}, nil, []int{}, map[string]string{"x": "2026-11-21", "k": "true", "z": "007"}}
	var out bytes.Buffer
	if err := (&Common{Output: "yaml"}).Print(&out, v, nil); err != nil {
		t.Fatal(err)
	}
	want := "b: \"yes: <&> \\\"no\\\"\\n\\L\\U0001F3AC\"\na:\n  default: 1\nc: null\nd: []\ne:\n  k: \"true\"\n  x: \"2026-11-21\"\n  z: \"007\"\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	if err := (&Common{Output: "json"}).Print(&out, v, nil); err != nil || strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), "<&>") {
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
