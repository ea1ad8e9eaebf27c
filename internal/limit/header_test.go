package limit

import (
	"net/http"
	"testing"
	"time"
)

func TestSet(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	SetHeader(h, nil)
	if len(h) > 0 {
		t.Errorf("%v without limits", h)
	}
	SetHeader(h, []HeaderItem{
		{Name: `a "b" \`, Units: 5, Window: time.Minute, Remaining: 3, Next: 1500 * time.Millisecond},
		{Name: "output/café\r\n 1m", Units: 9, Next: -1},
		{Name: "c", Units: 1, Remaining: 1, Window: time.Millisecond},
	})
	for field, want := range map[string]string{
		"RateLimit-Policy": `"a \"b\" \\";q=5;w=60, "output/caf??? 1m";q=9, "c";q=1;w=1`,
		"RateLimit":        `"a \"b\" \\";r=3;t=2, "output/caf??? 1m";r=0, "c";r=1;t=0`,
	} {
		if got := h.Get(field); got != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
}
