package standin

import (
	"strings"
	"testing"
)

func TestWhenFaultsApply(t *testing.T) {
	for _, test := range []struct {
		faults string
		calls  string // region and page of each
		want   string // ! for each call with the fault
	}{
		{"503@2", "US1 US1 US1", ".!."},
		{"503@2-3", "US1 US1 US1 US1", ".!!."},
		{"503@2-", "US1 US1 US1 US1", ".!!!"},
		{"503/2", "US1 US1 US1 US1", ".!.!"},
		{"503*2", "US1 US1 US1", "!!."},
		{"503@2-*1", "US1 US1 US1", ".!."},
		{"503@1 503/4", "US1 US1 US1 US1 US1", "!..!."},
		{"503:BR", "US1 BR1 US1 BR2", ".!.!"},
		{"503:BR#2", "BR1 BR2 US2 BR2", ".!.!"},
		{"503#2", "BR1 BR2 US2 US3", ".!!."},
		{"503:BR*1", "BR1 BR1", "!."},
		{"503@1 503:BR", "BR1 US1 BR1", "!.!"},
	} {
		url := start(t, &YouTube{Faults: strings.Fields(test.faults)})
		got := ""
		for _, call := range strings.Fields(test.calls) {
			token := pageToken(int(call[2]-'1')*50, false)
			status, _ := status(t, url+chartQuery+call[:2]+"&maxResults=50&pageToken="+token)
			got += map[int]string{200: ".", 503: "!"}[status]
		}
		if got != test.want {
			t.Errorf("%s on %s: %s, want %s", test.faults, test.calls, got, test.want)
		}
	}
}

func TestPageTokens(t *testing.T) {
	for offset, token := range map[int]string{5: "CAUQAA", 25: "CBkQAA", 50: "CDIQAA",
		100: "CGQQAA", 150: "CJYBEAA"} {
		if got := pageToken(offset, false); got != token {
			t.Errorf("token of %d is %s, want %s", offset, got, token)
		}
		if got, ok := parsePageToken(token, 50); !ok || got != offset {
			t.Errorf("%s is %d %v", token, got, ok)
		}
	}
	if got := pageToken(25, true); got != "CBkQAQ" {
		t.Errorf("token back from 25 is %s", got)
	}
	for _, wrong := range []string{"", "x", "CDIQAA==", "CDIQAg", "CDIQ", "CDIQAAA", "EDIQAA",
		"CP____________AQEAA", "ключ"} {
		if got, ok := parsePageToken(wrong, 50); ok {
			t.Errorf("%q is taken for %d", wrong, got)
		}
	}
}
