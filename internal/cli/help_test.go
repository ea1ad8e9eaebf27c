package cli

import "testing"

func TestWrap(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"short\nlines are", "short\nlines are"},
		{"one two three\nfour", "one two\nthree four"},
		{"größe größe x", "größe\ngröße x"},
		{"fits\n\none two three four", "fits\n\none two\nthree four"},
		{"a list:\n  one  two three\n  b    four", "a list:\n  one  two\n       three\n  b    four"},
		{"  a  one\n     two\n  b  x", "  a  one\n     two\n  b  x"},
		{"averylongword is", "averylongword\nis"},
	} {
		if got := wrap(c.text, 10); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
