package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// fedList is a price list whose table names its feed, on the server at %s.
const fedList = `hosts: [api.example.test]
credential: bearer
sources:
  page: {status: official, date: 2026-06, text: the price page}
split: {model: body.model}
tables:
  price:
    source: page
    feed: {url: %s/prices.json, providers: [maker]}
    columns: [output, input]
    rows:
      a: {input: 1, output: 4}
buckets: {money: {unit: usd/1000000}}
methods:
  x.ask: {route: POST /ask, source: page, take: {money: "price(model, {input: len(body)})"}}
`

// TestCostsUpdateOthers updates one list although the feed of another cannot be fetched.
func TestCostsUpdateOthers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `[{"id":"maker","models":[{"id":"a","prices":{"input_mtok":2,"output_mtok":4}}]}]`)
	}))
	defer server.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	dir := t.TempDir()
	for file, text := range map[string]string{
		"quota.yaml": "costs: costs.yaml\ncredentials: [{name: a, upstream: b}]\n",
		"costs.yaml": "default: b\nupstreams: {a: a.yaml, b: b.yaml}\n",
		"a.yaml":     fmt.Sprintf(fedList, gone.URL), "b.yaml": fmt.Sprintf(fedList, server.URL),
	} {
		must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	code, _, stderr := call(t, []string{"costs", "update", "--write", "--config",
		filepath.Join(dir, "quota.yaml")}, "QUOTA_STATE_DIR", dir)
	text, err := os.ReadFile(filepath.Join(dir, "b.yaml"))
	must(t, err)
	if code != 69 || !strings.Contains(string(text), "input: 2,") {
		t.Errorf("exit %d, %s\n%s", code, stderr, text)
	}
}

// TestCostsUpdateEdited requires that a change survives that a person makes to the list during the
// fetch.
func TestCostsUpdateEdited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "maker.yaml")
	const edit = "# by hand\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(edit+string(text)), 0o600)
		}
		if err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, `[{"id":"maker","models":[{"id":"a","prices":{"input_mtok":2,"output_mtok":4}}]}]`)
	}))
	defer server.Close()
	before := fmt.Sprintf(fedList, server.URL)
	must(t, os.WriteFile(path, []byte(before), 0o600))
	code, _, stderr := call(t, []string{"costs", "update", "--into", path, "--write"})
	text, err := os.ReadFile(path)
	must(t, err)
	if code != 1 || !strings.Contains(stderr, "changed in the meantime: run the command again") ||
		string(text) != edit+before {
		t.Errorf("exit %d, %s\n%s", code, stderr, text)
	}
}

// TestCostsUpdate fetches a list's feed, once while it stays the same, and follows no redirect. The
// rows change only if the response is valid.
func TestCostsUpdate(t *testing.T) {
	var feed atomic.Value
	var full atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := feed.Load().(string)
		etag := fmt.Sprintf("\"%x\"", text)
		switch {
		case text == "redirect":
			http.Redirect(w, r, "/else", http.StatusFound)
		case r.Header.Get("If-None-Match") == etag:
			w.WriteHeader(http.StatusNotModified)
		default:
			full.Add(1)
			w.Header().Set("ETag", etag)
			fmt.Fprint(w, text)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "maker.yaml")
	must(t, os.WriteFile(path, []byte(fmt.Sprintf(fedList, server.URL)), 0o600))
	row := func(input string) string {
		return `[{"id":"maker","models":[{"id":"a","prices":{"input_mtok":` + input +
			`,"output_mtok":4}}]}]`
	}
	for _, c := range []struct {
		feed    string
		code    int
		input   string // in the file
		fetched int64  // responses with prices so far
	}{
		{row("2"), 0, "input: 2,", 1},
		{row("2"), 0, "input: 2,", 1},
		{row("2.5"), 0, "input: 2.5,", 2},
		{row("250"), 1, "input: 2.5,", 3},
		{row("-1"), 1, "input: 2.5,", 4},
		{"<html>", 1, "input: 2.5,", 5},
		{"redirect", 69, "input: 2.5,", 5},
		{row("3.25"), 0, "input: 3.25,", 6},
	} {
		feed.Store(c.feed)
		code, stdout, stderr := call(t, []string{"costs", "update", "--into", path, "--write"},
			"QUOTA_STATE_DIR", dir)
		text, err := os.ReadFile(path)
		must(t, err)
		if code == 69 && stdout != "" {
			t.Errorf("%.40s: prints %s", c.feed, stdout)
		}
		if code != c.code || !strings.Contains(string(text), c.input) || full.Load() != c.fetched {
			t.Errorf("%.40s: exit %d, %s, fetched %d\n%s", c.feed, code, stderr, full.Load(), text)
		}
	}

	// a restored or edited list is compared even if its feed is unchanged
	restored := strings.Replace(fmt.Sprintf(fedList, server.URL), "input: 1,", "input: 2,", 1)
	must(t, os.WriteFile(path, []byte(restored), 0o600))
	code, _, stderr := call(t, []string{"costs", "update", "--into", path, "--write"},
		"QUOTA_STATE_DIR", dir)
	text, err := os.ReadFile(path)
	must(t, err)
	if code != 0 || !strings.Contains(string(text), "input: 3.25,") {
		t.Errorf("restored: exit %d, %s\n%s", code, stderr, text)
	}
	edited := strings.Replace(string(text), "input: 3.25,", "input: 3.5,", 1)
	must(t, os.WriteFile(path, []byte(edited), 0o600))
	code, stdout, stderr := call(t, []string{"costs", "update", "--into", path, "--check"},
		"QUOTA_STATE_DIR", dir)
	if code != 1 || !strings.Contains(stderr, "1 row not as in the source data set: a") {
		t.Errorf("edited: exit %d, %s, %s", code, stdout, stderr)
	}
}
