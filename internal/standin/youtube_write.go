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
	Items         []object  `json:"items"`
	NextPageToken string    `json:"nextPageToken,omitempty"`
	PrevPageToken string    `json:"prevPageToken,omitempty"`
	RegionCode    string    `json:"regionCode,omitempty"`
	PageInfo      *pageInfo `json:"pageInfo,omitempty"`
}

type pageInfo struct {
	TotalResults   int `json:"totalResults"`
	ResultsPerPage int `json:"resultsPerPage"`
}

// newList returns a list with its etag and those of its items. resource is like "videoList".
func newList(resource string, items []object) *list {
	if items == nil {
		items = []object{}
	}
	l := &list{Kind: "youtube#" + resource + "Response", Items: items}
	for _, item := range items {
		item["etag"] = etagOf(item)
	}
	l.Etag = etagOf(items)
	return l
}

// countedList returns a list without pages.
func countedList(resource string, items []object) *list {
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

// youTube sends a resource or a list, or 204 without one.
func (c *call) youTube(body any) {
	if body == nil {
		c.w.WriteHeader(http.StatusNoContent)
		return
	}
	if l, ok := body.(*list); ok && c.fault == "" {
		c.header("Etag", strconv.Quote(l.Etag))
		if match := c.r.Header.Get("If-None-Match"); match == l.Etag ||
			match == strconv.Quote(l.Etag) {
			c.w.WriteHeader(http.StatusNotModified)
			return
		}
	} else if ok && c.fault == "repeat" && len(l.Items) > 1 {
		l.Items[len(l.Items)-1] = l.Items[0]
	}
	c.google(http.StatusOK, encode(body, c.r.URL.Query().Get("prettyPrint") != "false"))
}

func (c *call) apiError(e *apiError) {
	text, _ := json.MarshalIndent(map[string]*apiError{"error": e}, "", "  ")
	c.google(e.Code, text)
}

// google sends JSON with the headers of Google's APIs.
func (c *call) google(status int, body []byte) {
	c.header("Content-Type", "application/json; charset=UTF-8")
	c.header("Cache-Control", "private")
	c.header("X-Content-Type-Options", "nosniff")
	c.w.Header()["Vary"] = []string{"Origin", "X-Origin", "Referer"}
	c.send(status, body)
}

// html sends an error page of Google's front end.
func (c *call) html(status int, what string) {
	c.header("Content-Type", "text/html; charset=UTF-8")
	c.w.WriteHeader(status)
	_, _ = fmt.Fprintf(c.w, "<!DOCTYPE html>\n<html lang=en>\n  <meta charset=utf-8>\n  "+
		"<title>Error %d (%s)!!1</title>\n"+
		"  <p><b>%d.</b> <ins>That’s an error.</ins>\n", status, what, status)
}
