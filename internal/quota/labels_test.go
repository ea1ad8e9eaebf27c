package quota

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLabelsRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := Labels(rapid.MapOfN(rapid.StringMatching(`[a-z][a-z0-9_]{0,31}`), rapid.String(), 0, 8).Draw(rt, "labels"))
		line := l.Encode()
		if strings.ContainsAny(line, ": \n") {
			rt.Fatalf("%q is not one plain word", line)
		}
		back, err := ParseLabels(line)
		maps.DeleteFunc(l, func(_, v string) bool { return v == "" })
		if err != nil || !maps.Equal(back, l) || back.Encode() != line {
			rt.Fatalf("%v became %v, %v", l, back, err)
		}
	})
}

func TestLabelsCheck(t *testing.T) {
	many := Labels{}
	for i := range 17 {
		many[fmt.Sprintf("l%d", i)] = "x"
	}
	long := strings.Repeat("x", 256)
	for name, l := range map[string]Labels{
		"upper case": {"Job": "x"}, "digit first": {"1job": "x"}, "empty name": {"": "x"}, "long name": {strings.Repeat("n", 33): "x"},
		"control": {"job": "a\x00b"}, "invalid": {"job": "\xff"}, "secret": {"job": "ya29." + strings.Repeat("a", 30)}, "many": many,
		"long": {"job": long + "x"}, "long in all": {"a": long, "b": long, "c": long, "d": long},
	} {
		if err := l.Check(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want malformed", name, err)
		}
	}
	if err := (Labels{"job": "日次取得", "region": "BR", "x_1": long}).Check(); err != nil {
		t.Error(err)
	}
	if err := Labels(nil).Check(); err != nil {
		t.Error(err)
	}
}

func TestIDsSortByTime(t *testing.T) {
	now := at(t, "2026-06-01T12:00:00Z")
	last := NewID(now)
	for range 100 {
		now = now.Add(time.Millisecond)
		id := NewID(now)
		if id <= last || len(id) != 14 || !idForm.MatchString(id) {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
	if a, b := NewID(now), NewID(now); a == b {
		t.Error("two IDs of one moment are the same")
	}
	if id := NewID(time.Time{}); !strings.HasPrefix(id, "00000000") {
		t.Errorf("ID of the zero time: %s", id)
	}
}

func TestParseReservation(t *testing.T) {
	bucket, id, err := ParseReservation(ReservationID("search_list", "06fmjq2kx4a9bc"))
	if bucket != "search_list" || id != "06fmjq2kx4a9bc" || err != nil {
		t.Error(bucket, id, err)
	}
	for _, text := range []string{"", "default", "default.", ".a", "default.a.b", "Default.a", "default.a:b", "-.a", "default.a\n"} {
		if _, _, err := ParseReservation(text); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v, want malformed", text, err)
		}
	}
}

// FuzzLabels: what is read is written and read again as the same, whatever a store held.
func FuzzLabels(f *testing.F) {
	for _, seed := range []string{
		"", "method=youtube.videos.list&region=BR", "a=b&a=c", "denied=default+24h", "run=r%3A1", "=", "&&", "a", "a=%zz", "a;b=c", "%00=%ff", "labels_lost=3RY0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		l, err := ParseLabels(line)
		if err != nil {
			return
		}
		_ = l.Check()
		written := l.Encode()
		if strings.ContainsAny(written, ": \n\x00") {
			t.Errorf("%q was written as %q", line, written)
		}
		back, err := ParseLabels(written)
		maps.DeleteFunc(l, func(_, v string) bool { return v == "" })
		if err != nil || !maps.Equal(back, l) {
			t.Errorf("%q: %v became %v, %v", line, l, back, err)
		}
	})
}
