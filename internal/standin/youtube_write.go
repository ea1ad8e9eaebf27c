package standin

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// list is the body of a list response.
type list struct {
	Kind          string    `json:"kind"`
	Etag          string    `json:"etag"`
	Items         []item    `json:"items"`
	NextPageToken string    `json:"nextPageToken,omitempty"`
	PrevPageToken string    `json:"prevPageToken,omitempty"`
	RegionCode    string    `json:"regionCode,omitempty"`
	PageInfo      *pageInfo `json:"pageInfo,omitempty"`
}

type pageInfo struct {
	TotalResults   int `json:"totalResults"`
	ResultsPerPage int `json:"resultsPerPage"`
}

// item is a resource with the requested parts.
type item struct {
	Kind           string `json:"kind"`
	Etag           string `json:"etag"`
	ID             any    `json:"id,omitempty"`
	Snippet        any    `json:"snippet,omitempty"`
	ContentDetails any    `json:"contentDetails,omitempty"`
	Statistics     any    `json:"statistics,omitempty"`
	Status         any    `json:"status,omitempty"`
}

// newList returns a list with its etag and those of its items. resource is like "videoList".
func newList(resource string, items []item) *list {
	if items == nil {
		items = []item{}
	}
	l := &list{Kind: "youtube#" + resource + "Response", Items: items}
	for i := range items {
		items[i].Etag = etagOf(items[i])
	}
	l.Etag = etagOf(items)
	return l
}

// countedList returns a list without pages.
func countedList(resource string, items []item) *list {
	l := newList(resource, items)
	l.PageInfo = &pageInfo{len(items), len(items)}
	return l
}

// etagOf returns 27 characters that depend only on the content, like the API's bare etags.
func etagOf(v any) string {
	sum := sha1.Sum(encode(v, false))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// encode returns v as JSON without HTML escapes, optionally indented as by the API.
func encode(v any, indent bool) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if indent {
		e.SetIndent("", "  ")
	}
	_ = e.Encode(v) // our own types cannot fail
	return b.Bytes()
}

// write sends the body, damaged if the fault says so.
func (f youTubeFault) write(w http.ResponseWriter, r *http.Request, body any) {
	if body == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	l, isList := body.(*list)
	if isList && f == "repeat" && len(l.Items) > 1 {
		l.Items[len(l.Items)-1] = l.Items[0]
	}
	if isList && f == "" {
		w.Header().Set("Etag", strconv.Quote(l.Etag))
		if match := r.Header.Get("If-None-Match"); match == l.Etag ||
			match == strconv.Quote(l.Etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	b := encode(body, r.URL.Query().Get("prettyPrint") != "false")
	switch f {
	case "truncated":
		b = b[:len(b)/2]
	case "cut":
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		writeBody(w, http.StatusOK, b[:len(b)/2])
		_ = http.NewResponseController(w).Flush() // an error has the same effect as the cut
		panic(http.ErrAbortHandler)
	}
	writeBody(w, http.StatusOK, b)
}

func writeError(w http.ResponseWriter, e *apiError) {
	b, _ := json.MarshalIndent(map[string]*apiError{"error": e}, "", "  ")
	writeBody(w, e.Code, b)
}

// writeBody sends JSON. It ignores write errors: the client has disconnected.
func writeBody(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=UTF-8")
	h.Set("Cache-Control", "private")
	h.Set("X-Content-Type-Options", "nosniff")
	h["Vary"] = []string{"Origin", "X-Origin", "Referer"}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func writeHTML(w http.ResponseWriter, status int, what string) {
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!DOCTYPE html>\n<html lang=en>\n  <meta charset=utf-8>\n  "+
		"<title>Error %d (%s)!!1</title>\n"+
		"  <p><b>%d.</b> <ins>That’s an error.</ins>\n", status, what, status)
}
