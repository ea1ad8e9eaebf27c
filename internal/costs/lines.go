package costs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"quotabudget/internal/quota"
	"quotabudget/internal/untrusted"
)

// calls locates the calls inside one request: lines of the file in its body or of an earlier
// upload, or items of a list.
type calls struct {
	File  *formula // name of an uploaded file in the response
	Sent  *formula // name of a file that was sent before
	List  string   // path of a list in the body
	Route *formula // route of an item: POST /v1/chat
	Body  string   // path of the body in an item
}

// Lines adds up the maximum cost of several calls in one request.
type Lines struct {
	// Sums contains the maximum units of the calls by bucket, the sums of the numbers in their
	// prices, count and bytes.
	Sums    map[string]float64
	Facts   map[string]string // facts of the calls; "" if they differ
	Refused string            // why a call has no price; "" if all have one
}

func newLines() Lines {
	return Lines{Sums: map[string]float64{"count": 0, "bytes": 0}, Facts: map[string]string{}}
}

// names returns the values by their names in expressions. If a call has no price, only the count
// and the bytes have a value.
func (l Lines) names() map[string]any {
	all := map[string]any{"count": l.Sums["count"], "bytes": l.Sums["bytes"]}
	if l.Refused != "" {
		return all
	}
	for name, fact := range l.Facts {
		if fact != "" {
			all[name] = fact
		}
	}
	for name, sum := range l.Sums {
		all[name] = sum
	}
	return all
}

// WithFiles returns the table with read as its source of earlier uploads.
func (t *Table) WithFiles(read func(ctx context.Context, name string) (Lines, error)) *Table {
	view := *t
	view.files = read
	return &view
}

// linesOf returns the lines of a request with calls, except an upload.
func (t *Table) linesOf(ctx context.Context, m Method, body any) (Lines, error) {
	if m.lines == nil || m.File() {
		return Lines{}, nil
	}
	if m.lines.List != "" {
		lines := newLines()
		for _, item := range untrusted.Items(body, m.lines.List) {
			text, err := json.Marshal(item)
			if err != nil {
				return lines, err
			}
			t.addCall(&lines, m.lines, item, len(text))
		}
		return lines, nil
	}
	name, err := m.lines.Sent.String(variables{"body": body})
	switch {
	case err != nil:
		return Lines{}, err
	case name == "":
		return Lines{}, errors.New("it names no file")
	case t.files == nil:
		return Lines{}, fmt.Errorf("the lines of file %.100q are not known", name)
	}
	return t.files(ctx, name)
}

// ReadFile adds up the lines of the only file in a multipart/form-data body, which it reads to its
// end, one line at a time.
func (t *Table) ReadFile(method string, h http.Header, body io.Reader) Lines {
	lines, spec := newLines(), t.methods[method].lines
	var file bool
	names := map[string]bool{}
	for part, err := range formParts(h.Get("Content-Type"), body) {
		switch {
		case err != nil:
			lines.Refused = "the request cannot be read: " + err.Error()
		// servers differ in which file or field they keep
		case file && part.file:
			lines.Refused = "the request has several files"
		case names[part.name]:
			lines.Refused = fmt.Sprintf("the request repeats the field %.40q", part.name)
		case part.file:
			file = true
			t.readLines(&lines, spec, part)
		}
		names[part.name] = true
	}
	if !file && lines.Refused == "" {
		lines.Refused = "the request has no file"
	}
	_, _ = io.Copy(io.Discard, body)
	return lines
}

// ReadLines adds up the lines of a file that a request names.
func (t *Table) ReadLines(file io.Reader) Lines {
	lines := newLines()
	for _, m := range t.Methods() {
		if m.File() {
			t.readLines(&lines, m.lines, file)
			break
		}
	}
	return lines
}

// readLines adds up the lines of a file, one at a time.
func (t *Table) readLines(lines *Lines, spec *calls, file io.Reader) {
	r := &eventReader{max: maxAnswer, lines: true, handle: func(_ string, data []byte) {
		doc, err := any(nil), error(nil)
		if lines.Refused == "" {
			if doc, err = untrusted.Decode(trimBody(data), jsonBounds); err != nil {
				lines.refuse(errors.New("it is not JSON, or is ambiguous"))
			}
		}
		t.addCall(lines, spec, doc, len(data))
	}}
	_, err := io.Copy(r, file)
	r.close()
	switch {
	case err != nil:
		lines.Refused = "the file is incomplete"
	case r.tooLong > 0:
		lines.Refused = fmt.Sprintf("a line is longer than %d bytes", maxAnswer)
	}
}

// refuse records the first call without a price.
func (l *Lines) refuse(err error) {
	if l.Refused == "" {
		l.Refused = fmt.Sprintf("call %.0f: %v", l.Sums["count"]+1, err)
	}
}

// addCall adds one call of size bytes.
func (t *Table) addCall(l *Lines, spec *calls, item any, size int) {
	if l.Refused == "" {
		if err := t.priceCall(l, spec, item, size); err != nil {
			l.refuse(err)
		}
	}
	l.Sums["count"]++
	l.Sums["bytes"] += float64(size)
}

// priceCall adds the maximum cost of a call.
func (t *Table) priceCall(l *Lines, spec *calls, item any, size int) error {
	route, err := spec.Route.String(variables{"item": item})
	verb, path, ok := strings.Cut(route, " ")
	to, err2 := url.ParseRequestURI(path)
	body, found := untrusted.Find(item, spec.Body)
	if err != nil || !ok || err2 != nil || !found {
		return errors.New("it names no call")
	}
	r := &http.Request{Method: verb, URL: to, Header: http.Header{}}
	id, err := t.Method(r)
	if err != nil {
		return err
	}
	m := t.methods[id]
	if m.lines != nil {
		return fmt.Errorf("%s cannot be part of another call", id)
	}
	q, err := t.quote(context.Background(), m, r, body, size, nil)
	if err != nil {
		return err
	}
	for _, c := range q.Costs {
		l.Sums[quota.WholeOf(c.Bucket)] += float64(max(c.Units, c.Most))
	}
	for _, n := range m.numbers {
		value, _ := q.env[n.key].(float64)
		l.Sums[n.key] += value
	}
	for _, name := range m.facts {
		fact, _ := q.env[name].(string)
		if before, ok := l.Facts[name]; ok && before != fact {
			fact = ""
		}
		l.Facts[name] = fact
	}
	return nil
}

// FileName returns the name that a successful response gives to the file of an upload, or "".
func (t *Table) FileName(method string, answer []byte) string {
	m := t.methods[method]
	doc, err := untrusted.Decode(bytes.TrimSpace(answer), jsonBounds)
	if !m.File() || err != nil {
		return ""
	}
	env := variables{}
	answerNames(env, http.StatusOK, nil, doc, len(answer))
	name, _ := m.lines.File.String(env)
	return name
}

// File reports whether requests of the method have a file, see Method.File.
func (t *Table) File(method string) bool { return t.methods[method].File() }

// File reports whether the body has a file, whose lines later calls refer to.
func (m Method) File() bool { return m.lines != nil && m.lines.File != nil }
