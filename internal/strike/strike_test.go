package strike

import (
	"fmt"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	var page string
	others := map[byte]func(string) error{'#': func(text string) error {
		page = text
		return nil
	}}
	for spec, want := range map[string]string{
		"503":        "{0 0 0 0}",
		"503@3":      "{3 3 0 0}",
		"503@3-":     "{3 0 0 0}",
		"503@3-7":    "{3 7 0 0}",
		"503/10":     "{0 0 10 0}",
		"503*2@4-/3": "{4 0 3 2}",
		"503#x":      "{0 0 0 0}",
	} {
		if kind, w, err := Parse(spec, []string{"503"}, others); kind != "503" ||
			fmt.Sprint(w) != want || err != nil {
			t.Errorf("%s: %s %v %v", spec, kind, w, err)
		}
	}
	if page != "x" {
		t.Errorf("page %q", page)
	}
	for spec, says := range map[string]string{
		"":        `fault "": kind "" is not one of 503, cut`,
		"505":     `fault "505": kind "505" is not one of 503, cut`,
		"503#x":   `kind "503#x"`, // an unknown mark
		"503@":    `"" is not a number above 0`,
		"503@3-x": `"x" is not a number above 0`,
		"503/0":   `fault "503/0": "0" is not`,
		"503*-1":  `"-1" is not`,
	} {
		if _, w, err := Parse(spec, []string{"503", "cut"}, nil); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v, want %s", spec, w, err, says)
		}
	}
}

func TestHits(t *testing.T) {
	for _, test := range []struct {
		when When
		hits string // of the first six requests
	}{
		{When{}, "123456"},
		{When{From: 3}, "3456"},
		{When{From: 2, To: 4}, "234"},
		{When{Every: 2}, "246"},
		{When{From: 3, Every: 2, Times: 1}, "4"},
		{When{Times: 2}, "12"},
	} {
		var hits string
		for n := range int64(6) {
			if test.when.Hits(n+1, int64(len(hits))) {
				hits += fmt.Sprint(n + 1)
			}
		}
		if hits != test.hits {
			t.Errorf("%+v strikes %s, want %s", test.when, hits, test.hits)
		}
	}
}
