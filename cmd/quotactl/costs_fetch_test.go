package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
)

// TestGetFeed fetches feeds from servers that hang, redirect, or send too much or too little.
func TestGetFeed(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		switch r.URL.Path {
		case "/silent":
			<-done
		case "/half":
			fmt.Fprint(w, "[")
			w.(http.Flusher).Flush()
			<-done
		case "/moved":
			http.Redirect(w, r, "/good", http.StatusFound)
		case "/long":
			w.Write(make([]byte, costs.MaxFeed+1))
		case "/cut":
			var packed bytes.Buffer
			to := gzip.NewWriter(&packed)
			to.Write(make([]byte, 1<<10))
			to.Close()
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packed.Bytes()[:packed.Len()/2])
		case "/unchanged":
			w.WriteHeader(http.StatusNotModified)
		case "/good":
			if r.Header.Get("If-None-Match") == `"1"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			fmt.Fprint(w, "[]")
		}
	}))
	defer server.Close()
	defer close(done)
	for _, c := range []struct {
		path, etag string
		timeout    time.Duration
		data, err  string
	}{
		{"/silent", "", time.Millisecond, "", "no response within 1ms"},
		{"/half", "", 100 * time.Millisecond, "", "no response within 100ms"},
		{"/moved", "", time.Minute, "", "it redirects"},
		{"/long", "", time.Minute, "", "it is longer than 16777216 bytes"},
		{"/cut", "", time.Minute, "", "unexpected EOF"},
		{"/unchanged", "", time.Minute, "", "304 Not Modified"},
		{"/good", "", time.Minute, "[]", ""},
		{"/good", `"1"`, time.Minute, "", ""},
	} {
		address, err := url.Parse(server.URL + c.path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := getFeed(t.Context(), &http.Client{Timeout: c.timeout}, address, c.etag)
		if string(got.Data) != c.data || (err != nil) != (c.err != "") ||
			err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.path, got.Data, err)
		}
	}
}
