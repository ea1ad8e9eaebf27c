package costs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"quotabudget/internal/quota"
	"quotabudget/internal/untrusted"
	"quotabudget/internal/words"
)

// maxBody is the maximum size in bytes of a request body that is decoded.
const maxBody = 32 << 20

// request returns the variables of a request that the method uses. Its body is doc, of size bytes.
func (t *Table) request(m Method, r *http.Request, doc any, size int, lines Lines) (
	variables, error) {
	query := map[string]string{}
	for name, values := range r.URL.Query() {
		query[name] = strings.Join(values, ",")
	}
	var path map[string]string // values of the route's {names}
	parts := partsOf(r.URL.EscapedPath())
	for _, at := range m.routes {
		if values, _, ok := at.match(parts); ok {
			path = values
			break
		}
	}
	env := variables{dayVariable: t.Day(), methodFact: m.ID, "query": query, "path": path,
		"header": lineOf(r.Header), "body_bytes": size, "body": doc,
		"count": func(path string) any { return float64(untrusted.Count(doc, path)) },
		"lines": lines.names()}
	facts := append(t.factsOfAnswers(), m.facts...)
	for _, f := range t.facts {
		if !slices.Contains(facts, f.name) {
			continue
		}
		text, err := f.Request.String(env)
		if err != nil {
			return nil, &factError{f.name, err}
		}
		env[f.name] = text
	}
	return env, nil
}

// parseBody reads a body of JSON, or the fields of a form.
func parseBody(h http.Header, body []byte) (doc any, err error) {
	encoding := h.Get("Content-Encoding")
	switch {
	case encoding != "" && encoding != "identity":
		return nil, errors.New("its body is packed: send it as it is")
	case len(body) > maxBody:
		return nil, fmt.Errorf("its body has %d bytes: %d at most", len(body), maxBody)
	}
	content := h.Get("Content-Type")
	kind, _, _ := mime.ParseMediaType(content)
	switch kind {
	case "multipart/form-data":
		doc, err = parseMultipart(content, body)
	case "application/x-www-form-urlencoded":
		doc, err = parseForm(body)
	default:
		doc, err = untrusted.Decode(body, jsonBounds)
	}
	bad, unusable := errors.AsType[*untrusted.Unusable](err)
	switch {
	case unusable:
		err = fmt.Errorf("%s %s", bad.Path, bad.Problem)
	case err == io.ErrUnexpectedEOF:
		err = errors.New("it is not JSON")
	}
	if err != nil {
		return nil, fmt.Errorf("its body cannot be read: %w", err)
	}
	return doc, nil
}

// Bounds of a multipart body.
const (
	maxParts = 1000
	maxText  = 1 << 20 // bytes of all fields except files
)

// formPart is a part of a multipart/form-data body.
type formPart struct {
	io.Reader
	name string
	file bool
}

// formParts yields the parts of a multipart/form-data body. It ends with an error if servers could
// read the form in different ways: a parameter is repeated, or split or encoded as in RFC 2231, or
// a part has a transfer encoding, which only some servers decode.
func formParts(content string, body io.Reader) iter.Seq2[formPart, error] {
	return func(yield func(formPart, error) bool) {
		_, params, err := mime.ParseMediaType(content)
		if err != nil || params["boundary"] == "" || strings.ContainsAny(content, `*\`) {
			yield(formPart{}, errors.New("its Content-Type has no boundary, or an unclear one"))
			return
		}
		in := multipart.NewReader(body, params["boundary"])
		for range maxParts {
			raw, err := in.NextRawPart()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(formPart{}, errors.New("it is not multipart/form-data"))
				return
			}
			lines := raw.Header["Content-Disposition"]
			kind, params, _ := mime.ParseMediaType(strings.Join(lines, ", "))
			encoding := strings.ToLower(raw.Header.Get("Content-Transfer-Encoding"))
			if kind != "form-data" || params["name"] == "" || len(lines) > 1 ||
				encodedName.MatchString(lines[0]) ||
				!slices.Contains([]string{"", "7bit", "8bit", "binary"}, encoding) {
				yield(formPart{}, errors.New("it has a part without a clear name or encoding"))
				return
			}
			if _, file := params["filename"]; !yield(formPart{raw, params["name"], file}, nil) {
				return
			}
		}
		yield(formPart{}, fmt.Errorf("it has more than %d parts", maxParts))
	}
}

// encodedName matches a parameter name that is split or encoded as in RFC 2231, which only some
// servers decode.
var encodedName = regexp.MustCompile(`(?i);\s*name\s*\*`)

// parseMultipart reads the fields of a multipart/form-data body: numbers, true and false as such,
// anything else as text. It skips files. A repeated field is an error.
func parseMultipart(content string, body []byte) (map[string]any, error) {
	all, left := map[string]any{}, maxText
	for part, err := range formParts(content, bytes.NewReader(body)) {
		if err != nil {
			return nil, err
		}
		if _, again := all[part.name]; again {
			return nil, fmt.Errorf("its field %.40q appears twice", part.name)
		}
		if part.file {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, int64(left)+1))
		if err != nil {
			return nil, errors.New("it is not multipart/form-data")
		}
		if left -= len(text); left < 0 {
			return nil, fmt.Errorf("its fields have more than %d bytes", maxText)
		}
		all[part.name] = fieldOf(text)
	}
	return all, nil
}

// parseForm reads the fields of an application/x-www-form-urlencoded body like parseMultipart.
func parseForm(data []byte) (map[string]any, error) {
	if len(data) > maxText {
		return nil, fmt.Errorf("its fields have more than %d bytes", maxText)
	}
	fields, err := url.ParseQuery(string(data))
	if err != nil {
		return nil, errors.New("it is not application/x-www-form-urlencoded")
	}
	all := map[string]any{}
	for name, values := range fields {
		if len(values) > 1 {
			return nil, fmt.Errorf("its field %.40q appears twice", name)
		}
		all[name] = fieldOf([]byte(values[0]))
	}
	return all, nil
}

// fieldOf returns the value of a field in expressions.
func fieldOf(text []byte) any {
	var value any
	if json.Unmarshal(text, &value) == nil {
		switch value.(type) {
		case float64, bool:
			return value
		}
	}
	return string(text)
}

// PriceError reports that a request is not sent, because its price cannot be computed. It wraps
// quota.ErrUnpriced.
type PriceError struct {
	Method, Bucket string
	Err            error
}

// Error names the method and the problem for the sender of the request. It contains no expressions
// of the list, and no values.
func (e *PriceError) Error() string {
	what := e.Err.Error()
	if missing, ok := e.Err.(*missingError); ok {
		what = inWords(missing.Paths) + " is missing"
	} else if unlisted, ok := e.Err.(*rowError); ok {
		what = fmt.Sprintf("the price list has no %s for %q", unlisted.Table, words.Clip(unlisted.Key))
	} else if wrong, ok := e.Err.(*valueError); ok && len(wrong.Reads) > 0 {
		what = fmt.Sprintf("its price depends on %s, and with what is there it is no number from "+
			"0 to %s", inWords(wrong.Reads), words.Count(quota.MaxUnits))
	}
	return fmt.Sprintf("cannot price %s: %s", e.Method, what)
}

// Formula returns the failing expression for the author of the price list, or "" if the error has
// another cause.
func (e *PriceError) Formula() string {
	if fact, ok := e.Err.(*factError); ok {
		return fmt.Sprintf("%s: %v", fact.name, fact.err)
	}
	if wrong, ok := errors.AsType[*valueError](e.Err); ok {
		return fmt.Sprintf("%s: %v", e.Bucket, wrong)
	}
	return ""
}

// factError is a fact of the list whose value in the request is not text.
type factError struct {
	name string
	err  error
}

// Error names neither the list's expression nor its name for the fact.
func (e *factError) Error() string {
	return "what its price depends on is there in another form than it should be"
}

// inWords returns the inputs of a formula in words: max_tokens in the body.
func inWords(reads []string) string {
	var all []string
	for _, path := range reads {
		root, name, _ := strings.Cut(path, ".")
		all = append(all, name+" in the "+root)
	}
	return strings.Join(all, ", ")
}

// Unwrap returns the cause and quota.ErrUnpriced.
func (e *PriceError) Unwrap() []error { return []error{e.Err, quota.ErrUnpriced} }
