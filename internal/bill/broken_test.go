package bill

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
)

const secretKey = "sk-admin-0123456789"

// day is 2026-11-24 in UTC.
var day = Day{Begin: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC),
	End: time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC), Settled: true}

// countOf asks an upstream that answers as serve does for the money of a day.
func countOf(t *testing.T, serve http.HandlerFunc) (Count, error) {
	t.Helper()
	server := httptest.NewServer(serve)
	defer server.Close()
	table, err := costs.Shipped().Upstream("openai")
	must(t, err)
	c := &Client{Table: table, Endpoint: server.URL + "/", AdminKey: secretKey,
		Timeout: 100 * time.Millisecond, Project: "p1"}
	m := table.Meters()[0]
	return c.Count(t.Context(), m, m.Usage[0], day)
}

// TestBroken: an unreliable response is an error of a kind, and repeats no key.
func TestBroken(t *testing.T) {
	const begin = `{"data": [{"start_time": 1795478400, "results": [`
	var many []string
	for i := range 4000 {
		many = append(many, fmt.Sprintf(
			`{"project_id": "p1", "line_item": "m%d", "amount": {"value": 4e9}}`, i))
	}
	for name, c := range map[string]struct {
		status     int
		body, want string
		kind       Kind
	}{
		"a web page":   {200, "\n<!DOCTYPE html><p>Log in", "a web page came in place", Away},
		"half of it":   {200, begin, "cannot parse its response", Other},
		"another form": {200, `{"days": []}`, "its response has no data", Other},
		"no amount": {200, begin + `{"project_id": "p1"}]}]}`,
			"a row has no amount.value", Other},
		"a negative amount": {200, begin + `{"project_id": "p1", "amount": {"value": -0.5}}]}]}`,
			"amount.value is negative: -0.5", Other},
		"no number": {200, begin + `{"project_id": "p1", "amount": {"value": "many"}}]}]}`,
			"amount.value is not a number", Other},
		"another currency": {200, begin +
			`{"project_id": "p1", "amount": {"value": 1, "currency": "eur"}}]}]}`,
			"its amounts are not in dollars, but in eur", Other},
		"too much": {200, begin + `{"project_id": "p1", "amount": {"value": 1e15}}]}]}`,
			"a figure is too large", Other},
		"too large a sum of many models": {200, begin + strings.Join(many, ",") + `]}]}`,
			"a figure is too large", Other},
		"no begin": {200, `{"data": [{"results": []}]}`, "a period has no start_time", Other},
		"a refused key": {401, `{"error": {"message": "Incorrect API key: ` + secretKey + `"}}`,
			"answered 401: Incorrect API key: [key]", BadKey},
		"no right":   {403, `{"error": {"message": "no"}}`, "answered 403: no", NotAllowed},
		"no project": {404, "", "answered 404", NoProject},
		"a redirect": {302, "", "answered 302", Other},
		"overloaded": {529, "", "answered 529", Away},
		"the same page again": {200, `{"data": [], "has_more": true, "next_page": "a"}`,
			"its pages do not end", Other},
	} {
		_, err := countOf(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example/")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Kind != c.kind || !strings.Contains(e.Error(), c.want) ||
			strings.Contains(e.Error(), secretKey) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestHangs: a server that does not respond is away, and reading endless pages stops.
func TestHangs(t *testing.T) {
	_, err := countOf(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if e, ok := errors.AsType[*Error](err); !ok || e.Kind != Away {
		t.Errorf("%v", err)
	}
	pages := 0
	_, err = countOf(t, func(w http.ResponseWriter, _ *http.Request) {
		pages++
		_, _ = io.WriteString(w, `{"data": [], "has_more": true, "next_page": "`+
			strings.Repeat("a", pages)+`"}`)
	})
	if err == nil || pages != maxPages || !strings.Contains(err.Error(), "more than 100 pages") {
		t.Errorf("%d pages, %v", pages, err)
	}
}

// TestCount: pages are added up without the rows of other projects and days, and a missing day is
// unknown.
func TestCount(t *testing.T) {
	row := func(project, item, value string) string {
		return `{"project_id": "` + project + `", "line_item": "` + item + `", "amount": {"value": ` +
			value + `}}`
	}
	bucket := func(start string, rows ...string) string {
		return `{"start_time": ` + start + `, "results": [` + strings.Join(rows, ",") + `]}`
	}
	answers := map[string]string{
		"": `{"data": [` + bucket("1795478400", row("p1", "gpt-5, input", "0.000001"),
			row("p1", "gpt-5, output", "0.0000026"), row("p2", "gpt-5, output", "9")) + `],
			"has_more": true, "next_page": "two"}`,
		"two": `{"data": [` + bucket("1795478400", row("p1", "web search", `"0.5"`)) + `,` +
			bucket("1795564800", row("p1", "gpt-5, input", "7")) + `], "has_more": false}`,
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secretKey ||
			r.URL.Query().Get("start_time") != "1795478400" {
			t.Errorf("asked %s with %q", r.URL, r.Header.Get("Authorization"))
		}
		_, _ = io.WriteString(w, answers[r.URL.Query().Get("page")])
	}
	got, err := countOf(t, serve)
	if err != nil || !got.Known || got.Units != 500_004 || got.Models["gpt-5"] != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	answers[""] = `{"data": [` + bucket("1795564800") + `]}`
	if got, err = countOf(t, serve); err != nil || got.Known || got.Units != 0 {
		t.Errorf("a missing day: %+v, %v", got, err)
	}
	answers[""] = `{"data": [` + bucket("1795478400", row("p2", "gpt-5, output", "9")) + `]}`
	if got, err = countOf(t, serve); err != nil || got.Known || got.Units != 0 {
		t.Errorf("only another project: %+v, %v", got, err)
	}
	answers[""] = `{"data": [` + bucket("1795478400") + `]}`
	if got, err = countOf(t, serve); err != nil || got.Known || got.Units != 0 {
		t.Errorf("a day without rows: %+v, %v", got, err)
	}
}
