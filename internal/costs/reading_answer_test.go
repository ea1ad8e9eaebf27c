package costs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMoments(t *testing.T) {
	at := time.Date(2026, 11, 22, 15, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		form  Form
		text  string
		at    time.Time
		after time.Duration
	}{
		{FormRFC3339, "2026-11-22T15:04:05Z", at, 0},
		{FormRFC3339, "2026-11-22T16:04:05+01:00", at, 0},
		{FormEpoch, fmt.Sprint(at.Unix()), at, 0},
		{FormEpoch, fmt.Sprint(at.Unix()) + ".5", at.Add(time.Second / 2), 0},
		{FormEpoch, fmt.Sprint(at.UnixMilli()), at, 0},
		{FormEpoch, fmt.Sprint(at.UnixMicro()), at, 0},
		{FormEpoch, fmt.Sprint(at.UnixNano()), at, 0},
		{FormDate, "access on 2026-11-22 at 15:04 UTC.", at.Truncate(time.Minute), 0},
		{FormDate, "the cycle begins on 2026-11-22.", at.Truncate(24 * time.Hour), 0},
		{FormDate, "until 2026-11-22T16:04:05.2+01:00", at, 0},
		{FormDuration, "6m0s", time.Time{}, 6 * time.Minute},
		{FormDuration, "12ms", time.Time{}, 12 * time.Millisecond},
		{FormDuration, "30", time.Time{}, 30 * time.Second},
		{FormSeconds, " 1.5 ", time.Time{}, 1500 * time.Millisecond},
		{FormSeconds, "Sun, 22 Nov 2026 15:04:05 GMT", at, 0},
	} {
		got, after, ok := ParseMoment(c.text, c.form)
		if !ok || !got.Equal(c.at) || after != c.after {
			t.Errorf("%s %q is %v, %v, %v", c.form, c.text, got, after, ok)
		}
	}
	// A duration in seconds that is read as an epoch, or the reverse, is wrong by decades.
	for form, texts := range map[Form][]string{
		FormRFC3339: {"", "soon", "1795359845", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z"},
		FormDate:    {"", "soon", "2026-13-01", "on the 1st"},
		FormEpoch:   {"", "-1", "0", "60", "17953598450", "NaN", "Inf", "2026-11-22T15:04:05Z"},
		FormDuration: {"", "-1s", "0s", "-1", "1795359845", "1e99", "99999999h",
			"9999999999999999999h"},
		FormSeconds: {"", "-1", "0", "1795359845", "NaN", "+Inf", "tomorrow"},
		FormNumber:  {"5"},
		"":          {"5"},
	} {
		for _, text := range texts {
			if at, after, ok := ParseMoment(text, form); ok {
				t.Errorf("%s %q is %v, %v", form, text, at, after)
			}
		}
	}
}

// events reads a stream in pieces of size bytes.
func events(text string, most, size int) (got []string, tooLong int) {
	e := &eventReader{max: most, handle: func(name string, data []byte) {
		got = append(got, name+"="+string(data))
	}}
	for piece := range slices.Chunk([]byte(text), size) {
		e.Write(piece)
	}
	e.close()
	return got, e.tooLong
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

// TestEventsWithoutEnd: the memory for an endless line is bounded by the maximum size of an event.
func TestEventsWithoutEnd(t *testing.T) {
	e := &eventReader{max: 1 << 10, handle: func(string, []byte) { t.Error("an event") }}
	piece := bytes.Repeat([]byte("data: x"), 100)
	if n := testing.AllocsPerRun(1000, func() { e.Write(piece) }); n > 2 {
		t.Errorf("%v allocations for each piece", n)
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

func TestUnit_Text(t *testing.T) {
	for _, c := range []struct {
		unit  string
		units int64
		want  string
	}{
		{"usd/1000000", 12_400_000, "$12.40"},
		{"usd/1000000", 1, "$0.000001"},
		{"usd/1000000", 0, "$0.00"},
		{"usd/1000000", -1_234_567_890_001, "-$1,234,567.90"},
		{"usd/1000000", 999_990_001, "$1,000.00"},
		{"tokens", 12_000, "12,000 tokens"},
		{"tokens", 1, "1 token"},
		{"units", -1000, "-1,000 units"},
		{"bytes", 999, "999 bytes"},
	} {
		u := unitOf(c.unit)
		if u.String() != c.unit {
			t.Fatal(u)
		}
		if got := u.Text(c.units); got != c.want {
			t.Errorf("%d %s: %s, not %s", c.units, c.unit, got, c.want)
		}
	}
}

// formBody returns a multipart body. A part is its name and further headers, and after | its value.
func formBody(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		head, value, _ := strings.Cut(part, "|")
		b.WriteString("--b\r\nContent-Disposition: form-data; name=" + head + "\r\n\r\n" +
			value + "\r\n")
	}
	return b.String() + "--b--\r\n"
}

func TestParseMultipart(t *testing.T) {
	most := strings.Repeat("x", 1<<20)
	for _, c := range []struct{ body, want, err string }{
		{formBody("model|small-2", "n|4", "stream|true", "x|007", `"a b"|`, "o|{}"),
			`{"a b":"","model":"small-2","n":4,"o":"{}","stream":true,"x":"007"}`, ""},
		{formBody("image; filename=a.png|\x89PNG", "image; filename=b.png|--x", "n|2"), `{"n":2}`, ""},
		{formBody("file; filename=big|" + most + most), `{}`, ""},
		{formBody("n|1", "n|2"), "", `"n" appears twice`},
		{formBody("n; filename=a|1", "n|2"), `{"n":2}`, ""},
		{formBody("a|"+most[1:], "b|x"), `2`, ""},
		{formBody("a|"+most, "b|x"), "", "more than 1048576 bytes"},
		{strings.TrimSuffix(formBody("a|1"), "--b--\r\n"), "", "not multipart"},
		{`{"a":1}`, "", "not multipart"},
		{formBody("model; name*=utf-8''x|big"), "", "clear name"},
		{formBody("model; name*0=x|big"), "", "clear name"},
		{formBody("model; name=x|big"), "", "clear name"},
		{formBody("a\r\nContent-Disposition: form-data; name=model|big"), "", "clear name"},
		{formBody("model\r\nContent-Transfer-Encoding: quoted-printable|=61"), "", "clear name"},
		{formBody(strings.Fields(strings.Repeat("f;filename=x|1 ", 1001))...), "", "1000 parts"},
	} {
		got, err := parseMultipart("multipart/form-data; boundary=b", []byte(c.body))
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%.60q: %v, want %s", c.body, err, c.err)
		}
		text, _ := json.Marshal(got)
		if c.want == "2" && len(got) == 2 { // for a long body, only the number of fields
			continue
		}
		if err == nil && string(text) != c.want {
			t.Errorf("%.60q is %.100s", c.body, text)
		}
	}
	for _, content := range []string{"multipart/form-data", "multipart/form-data; boundary=",
		"multipart/form-data; boundary=b; boundary=c", "multipart/form-data; boundary*=utf-8''b",
		"multipart/form-data; boundary=c; boundary*0=b", `multipart/form-data; boundary="\b"`} {
		if got, err := parseMultipart(content, []byte(formBody("a|1"))); err == nil {
			t.Errorf("%s: %v is read", content, got)
		}
	}
}

// TestReadFile: an upload in which servers could find another file has no price.
func TestReadFile(t *testing.T) {
	table, err := Shipped().Upstream("openai")
	if err != nil {
		t.Fatal(err)
	}
	const content = "multipart/form-data; boundary=b"
	const cheap = `file; filename=a|{"method":"POST","url":"/v1/responses",` +
		`"body":{"model":"gpt-5-nano","max_output_tokens":1}}`
	dear := strings.ReplaceAll(cheap, "nano", "pro")
	hidden := strings.ReplaceAll(formBody(cheap), "--b", "--") // in the preamble, for a server
	for _, c := range []struct{ content, body, refused string }{
		{content, formBody("purpose|batch", cheap), ""},
		{content, formBody(cheap, dear), "several files"},
		{content, formBody(cheap, strings.Replace(dear, "file", "x", 1)), "several files"},
		{content, formBody(cheap, strings.Replace(dear, "=a", `=""`, 1)), "several files"},
		{content, formBody(strings.Replace(dear, "; filename=a", "", 1), cheap), "repeats"},
		{content, formBody("purpose|batch"), "no file"},
		{content + "; boundary=c", hidden + formBody(dear), "no boundary"},
	} {
		lines := table.ReadFile("openai.files.create", http.Header{"Content-Type": {c.content}},
			strings.NewReader(c.body))
		if (lines.Refused == "") != (c.refused == "") ||
			!strings.Contains(lines.Refused, c.refused) {
			t.Errorf("%s %.300q: %+v, want %q", c.content, c.body, lines, c.refused)
		}
	}
}

func TestParseForm(t *testing.T) {
	for body, want := range map[string]string{
		"channel=C1&text=a%26b+c&n=4&stream=true": `{"channel":"C1","n":4,"stream":true,` +
			`"text":"a\u0026b c"}`,
		"":                             `{}`,
		"a=1&a=2":                      `its field "a" appears twice`,
		"a=%zz":                        "it is not application/x-www-form-urlencoded",
		strings.Repeat("x", maxText+1): "its fields have more than 1048576 bytes",
	} {
		got, err := parseForm([]byte(body))
		text, _ := json.Marshal(got)
		if err != nil {
			text = []byte(err.Error())
		}
		if string(text) != want {
			t.Errorf("%.60q: %s, want %s", body, text, want)
		}
	}
}
