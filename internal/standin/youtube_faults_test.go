package standin

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestFaultKinds(t *testing.T) {
	for _, test := range []struct {
		kind   string
		status int
		holds  string
		units  int64
		err    error
	}{
		{"500", 500, "backendError", 1, nil},
		{"503", 503, "backendError", 1, nil},
		{"500-html", 500, "<!DOCTYPE html>", 1, nil},
		{"500-null", 500, `"message": null`, 1, nil},
		{"200-html", 200, "<!DOCTYPE html>", 1, nil},
		{"400-token", 400, "invalidPageToken", 1, nil},
		{"404-chart", 404, "videoChartNotFound", 1, nil},
		{"truncated", 200, "youtube#videoListResponse", 1, nil},
		{"repeat", 200, "youtube#videoListResponse", 1, nil},
		{"429", 429, "1/min/{project}", 0, nil},
		{"429-day", 429, "1/d/{project}", 0, nil},
		{"429-bare", 429, "rateLimitExceeded", 0, nil},
		{"403-quota", 403, "quotaExceeded", 0, nil},
		{"403-daily", 403, "dailyLimitExceeded", 0, nil},
		{"403-disabled", 403, "SERVICE_DISABLED", 0, nil},
		{"403-blocked", 403, "API_KEY_SERVICE_BLOCKED", 0, nil},
		{"drop", 0, "EOF", 1, nil},
		{"cut", 200, "youtube#videoListResponse", 1, io.ErrUnexpectedEOF},
	} {
		s := &YouTube{Faults: []string{test.kind}}
		r := get(t, start(t, s), "GET "+chartQuery+"US")
		if !errors.Is(r.err, test.err) || r.status != test.status ||
			!strings.Contains(r.body, test.holds) {
			t.Errorf("%s: %d %v %s", test.kind, r.status, r.err, r.body)
		}
		if c := s.Counts(); c.Units["default"] != test.units ||
			c.Rejected+c.Refused != 1-test.units {
			t.Errorf("%s: counts %+v", test.kind, c)
		}
		if valid := json.Valid([]byte(r.body)); valid == (test.kind == "truncated" ||
			test.err != nil || r.status == 0 || strings.HasSuffix(test.kind, "html")) {
			t.Errorf("%s: valid JSON is %v", test.kind, valid)
		}
	}
}

func TestWhenFaultsStrike(t *testing.T) {
	for _, test := range []struct {
		faults string
		calls  string // region and page of each
		want   string // ! where the fault strikes
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
