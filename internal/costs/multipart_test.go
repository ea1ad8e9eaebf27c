package costs

import (
	"encoding/json"
	"strings"
	"testing"
)

// formBody is a multipart body; each part is its headers after the name, and its value.
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
		{formBody("n|1", "n|2"), "", `"n" comes twice`},
		{formBody("n; filename=a|1", "n|2"), `{"n":2}`, ""},
		{formBody("a|"+most[1:], "b|x"), `2`, ""},
		{formBody("a|"+most, "b|x"), "", "more than 1048576 bytes"},
		{strings.TrimSuffix(formBody("a|1"), "--b--\r\n"), "", "not multipart"},
		{`{"a":1}`, "", "not multipart"},
		{formBody(strings.Fields(strings.Repeat("f;filename=x|1 ", 1001))...), "", "1000 parts"},
	} {
		got, err := parseMultipart([]byte(c.body), "b")
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%.60q: %v, want %s", c.body, err, c.err)
		}
		text, _ := json.Marshal(got)
		if c.want == "2" && len(got) == 2 { // too long to write
			continue
		}
		if err == nil && string(text) != c.want {
			t.Errorf("%.60q is %.100s", c.body, text)
		}
	}
	if _, err := parseMultipart([]byte(formBody("a|1")), ""); err == nil {
		t.Error("a body without a boundary is read")
	}
}

func TestParseForm(t *testing.T) {
	for body, want := range map[string]string{
		"channel=C1&text=a%26b+c&n=4&stream=true": `{"channel":"C1","n":4,"stream":true,"text":"a\u0026b c"}`,
		"":                             `{}`,
		"a=1&a=2":                      `its field "a" comes twice`,
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
