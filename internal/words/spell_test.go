package words

import (
	"strings"
	"testing"
)

func TestDidYouMean(t *testing.T) {
	known := []string{"youtube.videos.list", "youtube.videos.rate", "default", "search_list",
		"GB", "spend"}
	for word, want := range map[string]string{
		"videos.list": "youtube.videos.list", "youtube.video.list": "youtube.videos.list",
		"youtube.videos.lsit": "youtube.videos.list",
		"defualt":             "default", "DEFAULT": "default",
		"serch_list": "search_list", "spned": "spend",
		"gb": "GB",
		"":   "", "x": "", "zz": "", "nothing like it": "", strings.Repeat("default", 100): "",
	} {
		got := DidYouMean(word, known)
		if want != "" {
			want = " (did you mean " + want + "?)"
		}
		if got != want {
			t.Errorf("%.20q: %q, want %q", word, got, want)
		}
	}
	if got := DidYouMean("default", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "adc", 1},
		{"abc", "acb", 2}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
