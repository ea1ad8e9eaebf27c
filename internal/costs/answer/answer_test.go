package answer_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs/answer"
)

func TestPaths(t *testing.T) {
	var doc any
	must(t, json.Unmarshal([]byte(`{"a":{"b":[{"c":1.5},{"c":"x"},{"d":"y"}]},"n":null,"t":"text",
		"data":[1,2,3],"includes":{"users":[{},{}],"media":[{}],"one":{}},"big":1e15,
		"vast":1900000000000000001}`), &doc))
	for path, want := range map[string]string{"a.b.0.c": "1.5", "a.b.1.c": "x", "t": "text",
		"big": "1000000000000000", "vast": "", "a.b.2.c": "", "a.b.3": "", "a.b.x": "",
		"a.b.-1": "", "n": "", "t.x": "", "": "", "a": ""} {
		if got, ok := answer.Text(doc, path); got != want || ok != (want != "") {
			t.Errorf("%s is %q, %v", path, got, ok)
		}
	}
	for path, want := range map[string]int{"data": 3, "includes.*": 4, "a.b.*.c": 2, "a": 1,
		"t": 1, "n": 0, "none": 0, "none.*": 0, "*": 8, "data.*": 3, "a.b.*": 3} {
		if got := answer.Count(doc, path); got != want {
			t.Errorf("%d at %s, want %d", got, path, want)
		}
	}
	for path, want := range map[string]string{"a.b.*.d": "y", "a.b.*.c": "x", "t": "text",
		"data.*": "", "none.*.x": "", "a.b.1.c": "x"} {
		if got := answer.First(doc, path); got != want {
			t.Errorf("first of %s is %q", path, got)
		}
	}
}

func TestMoments(t *testing.T) {
	at := time.Date(2026, 11, 22, 15, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		form  answer.Form
		text  string
		at    time.Time
		after time.Duration
	}{
		{answer.RFC3339, "2026-11-22T15:04:05Z", at, 0},
		{answer.RFC3339, "2026-11-22T16:04:05+01:00", at, 0},
		{answer.Epoch, fmt.Sprint(at.Unix()), at, 0},
		{answer.Epoch, fmt.Sprint(at.Unix()) + ".5", at.Add(time.Second / 2), 0},
		{answer.Epoch, fmt.Sprint(at.UnixMilli()), at, 0},
		{answer.Epoch, fmt.Sprint(at.UnixMicro()), at, 0},
		{answer.Epoch, fmt.Sprint(at.UnixNano()), at, 0},
		{answer.Date, "access on 2026-11-22 at 15:04 UTC.", at.Truncate(time.Minute), 0},
		{answer.Date, "the cycle begins on 2026-11-22.", at.Truncate(24 * time.Hour), 0},
		{answer.Date, "until 2026-11-22T16:04:05.2+01:00", at, 0},
		{answer.Duration, "6m0s", time.Time{}, 6 * time.Minute},
		{answer.Duration, "12ms", time.Time{}, 12 * time.Millisecond},
		{answer.Duration, "30", time.Time{}, 30 * time.Second},
		{answer.Seconds, " 1.5 ", time.Time{}, 1500 * time.Millisecond},
		{answer.Seconds, "Sun, 22 Nov 2026 15:04:05 GMT", at, 0},
	} {
		got, after, ok := answer.Moment(c.text, c.form)
		if !ok || !got.Equal(c.at) || after != c.after {
			t.Errorf("%s %q is %v, %v, %v", c.form, c.text, got, after, ok)
		}
	}
	// A number of seconds read as an epoch, and the reverse, are decades off.
	for form, texts := range map[answer.Form][]string{
		answer.RFC3339: {"", "soon", "1795359845", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z"},
		answer.Date:    {"", "soon", "2026-13-01", "on the 1st"},
		answer.Epoch:   {"", "-1", "0", "60", "17953598450", "NaN", "Inf", "2026-11-22T15:04:05Z"},
		answer.Duration: {"", "-1s", "0s", "-1", "1795359845", "1e99", "99999999h",
			"9999999999999999999h"},
		answer.Seconds: {"", "-1", "0", "1795359845", "NaN", "+Inf", "tomorrow"},
		answer.Number:  {"5"},
		"":             {"5"},
	} {
		for _, text := range texts {
			if at, after, ok := answer.Moment(text, form); ok {
				t.Errorf("%s %q is %v, %v", form, text, at, after)
			}
		}
	}
	for text, want := range map[string]int64{"0": 0, "1040": 1040, " 7 ": 7, "990.9": 990,
		"-1": -1, "": -1, "many": -1, "NaN": -1, "Inf": -1, "1e300": -1} {
		got, ok := answer.Amount(text, answer.Remaining)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q is %d, %v", text, got, ok)
		}
	}
}

// TestAmounts: a header may have the units used and the limit, or a limit with its window.
func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		text string
		part answer.Part
		want int64
	}{
		{"32/40", answer.Remaining, 8}, {"32/40", answer.Used, 32}, {"32/40", answer.Limit, 40},
		{"41/40", answer.Remaining, 0}, {"100, 100;w=60", answer.Limit, 100},
		{"100, 100;w=60", answer.Remaining, -1}, {"9, 8", answer.Limit, -1},
		{"a/40", answer.Used, -1},
		{"32/", answer.Remaining, -1}, {"-1/40", answer.Remaining, -1},
	} {
		got, ok := answer.Amount(c.text, c.part)
		if ok != (c.want >= 0) || ok && got != c.want {
			t.Errorf("%s of %q is %d, %v", c.part, c.text, got, ok)
		}
	}
}

func TestParam(t *testing.T) {
	const two = `"burst";r=10;t=1, "da;i,ly" ; r=500 ; t=3600`
	for _, c := range []struct{ text, item, want string }{
		{`"api";r=999;t=295`, "", "999"}, {`api;r=5`, "", "5"}, {two, "", ""}, {two, "burst", "10"},
		{two, "da;i,ly", "500"}, {two, "none", ""}, {"limit=100, remaining=50, reset=30", "", "50"},
		{"999", "", ""}, {"", "", ""}, {`"r=5"`, "", ""},
	} {
		got, ok := answer.Param(c.text, c.item, "r", "remaining")
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q of %q is %q, %v", c.item, c.text, got, ok)
		}
	}
}

// events reads a stream in pieces of so many bytes.
func events(text string, most, size int) (got []string, tooLong int) {
	e := &answer.Events{Max: most, Handle: func(name string, data []byte) {
		got = append(got, name+"="+string(data))
	}}
	for piece := range slices.Chunk([]byte(text), size) {
		e.Write(piece)
	}
	e.Close()
	return got, e.TooLong
}

func TestEvents(t *testing.T) {
	long := "data: " + strings.Repeat("x", 200) + "\n\n"
	for _, c := range []struct {
		text string
		want []string
		long int
	}{
		{"data: a\n\ndata: b\n\n", []string{"=a", "=b"}, 0},
		{"event: e\r\ndata: a\r\ndata: b\r\n\r\n", []string{"e=a\nb"}, 0},
		{"\ufeff:hello\rdata:a\r\r", []string{"=a"}, 0},
		{"event: e\n\ndata: a\n\n", []string{"=a"}, 0},
		{"data\n\n", []string{"="}, 0},
		{"id: 5\nretry: 1\ndata: {\"a\":1}\n\n", []string{`={"a":1}`}, 0},
		{"data: a\n\ndata: no newline", []string{"=a", "=no newline"}, 0},
		{"data: a\n\n" + long + "data: b\n\n", []string{"=a", "=b"}, 1},
		{strings.Repeat("data: 123456789\n", 30) + "\ndata: b\n\n", []string{"=b"}, 1},
		{"", nil, 0}, {"\n\n\n", nil, 0},
	} {
		for size := 1; size < 9; size++ {
			got, tooLong := events(c.text, 100, size)
			if !slices.Equal(got, c.want) || tooLong != c.long {
				t.Errorf("%q by %d: %q, %d too long", c.text, size, got, tooLong)
			}
		}
	}
}

// TestEventsWithoutEnd: a line that never ends holds no more than one event may.
func TestEventsWithoutEnd(t *testing.T) {
	e := &answer.Events{Max: 1 << 10, Handle: func(string, []byte) { t.Error("an event") }}
	piece := bytes.Repeat([]byte("data: x"), 100)
	if n := testing.AllocsPerRun(1000, func() { e.Write(piece) }); n > 2 {
		t.Errorf("%v allocations for each piece", n)
	}
}

func packed(t *testing.T, data []byte, open func(io.Writer) io.WriteCloser) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := open(&out)
	_, err := w.Write(data)
	must(t, err)
	must(t, w.Close())
	return &out
}

func TestUnpack(t *testing.T) {
	text := []byte(strings.Repeat("some text ", 100))
	writers := map[string]func(io.Writer) io.WriteCloser{
		"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"Deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		"deflate": func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 9); return f },
	}
	for encoding, open := range writers {
		for most, want := range map[int64]error{1000: nil, 1001: nil, 999: answer.ErrTooLong} {
			r, err := answer.Unpack(encoding, packed(t, text, open), most)
			must(t, err)
			got, err := io.ReadAll(r)
			if !errors.Is(err, want) || int64(len(got)) != min(most, 1000) {
				t.Errorf("%s to %d: %d bytes, %v", encoding, most, len(got), err)
			}
		}
	}
	bomb := packed(t, make([]byte, 64<<20), writers["gzip"])
	size := bomb.Len()
	r, err := answer.Unpack("gzip", bomb, 1<<20)
	must(t, err)
	if n, err := io.Copy(io.Discard, r); n != 1<<20 || !errors.Is(err, answer.ErrTooLong) ||
		bomb.Len() < size/2 {
		t.Errorf("%d bytes of a bomb, %v, %d of %d left", n, err, bomb.Len(), size)
	}
	for encoding, body := range map[string]string{"br": "x", "gzip": "not", "deflate": ""} {
		if _, err := answer.Unpack(encoding, strings.NewReader(body), 10); err == nil {
			t.Errorf("%s was read", encoding)
		}
	}
}

func TestParseUnique(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":[1,{"b":null}],"c":"x"}`: "", `[]`: "", `5`: "",
		`{"a":1,"a":2}`: "twice", `{"a":1,"\u0061":2}`: "twice", `[{"x":{"a":1,"a":1}}]`: "twice",
		`{"a":1} {}`: "something else", `{"a":`: "not JSON", ``: "not JSON", `{"a" 1}`: "not JSON",
		`{`: "not JSON", `[1`: "not JSON", `{"a":1]`: "not JSON",
		strings.Repeat("[", 300) + strings.Repeat("]", 300):   "too deep",
		"[" + strings.Repeat("0,", answer.MaxValues) + "0]":   "500001 values: 500000 at most",
		`["` + strings.Repeat(",", answer.MaxValues+1) + `"]`: "", // one text
	} {
		got, err := answer.ParseUnique([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
		if again, _ := json.Marshal(got); err == nil && string(again) != text {
			t.Errorf("%s is %s", text, again)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":[{"c":2}]}`:                `{"a":1,"b":[{"c":2}]}`,
		`{"a":1,"a":1}`:                        "twice",
		`[{"x":{"a":1,"a":2}}]`:                "twice",
		"{\"a\":1}\n{\"a\":2,\"\\u0061\":3}\n": "twice",
		`{"a":1}{}`:                            `[{"a":1},{}]`,
		"\ufeff{\"a\":1}\n{\"a\":2}\n":         `[{"a":1},{"a":2}]`,
		`{"a":1} and more`:                     "not JSON",

		"[" + strings.Repeat("{},", answer.MaxParts) +
			"0]": "200001 objects and lists: 200000 at most",
	} {
		value, err := answer.Parse([]byte(text))
		if err != nil {
			if !strings.Contains(err.Error(), want) || (want == "twice") != errors.Is(err, answer.ErrTwice) {
				t.Errorf("%.40s: %v", text, err)
			}
			continue
		}
		if got, _ := json.Marshal(value); string(got) != want {
			t.Errorf("%s is %s", text, got)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("event: a\r\ndata: x\r\n\r\n", uint8(3))
	f.Add("data: x\n\ndata: y", uint8(1))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		whole, _ := events(text, 64, len(text)+1)
		pieces, _ := events(text, 64, int(size)+1)
		if !slices.Equal(whole, pieces) {
			t.Errorf("%q is %q, by %d %q", text, whole, size, pieces)
		}
	})
}

// must ends a test that cannot go on after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
