package costs

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/untrusted"
)

// maxBody is the maximum size in bytes of a request body that is decoded.
const maxBody = 32 << 20

// request returns the variables of a request that the method uses. Its body is doc, of size bytes.
func (t *Table) request(m Method, r *http.Request, doc any, size int, lines Lines) (
	formula.Env, error) {
	query := map[string]string{}
	for name, values := range r.URL.Query() {
		query[name] = strings.Join(values, ",")
	}
	env := formula.Env{formula.Day: t.Day(), methodFact: m.ID, "query": query, "path": m.values(r),
		"header": lineOf(r.Header), "body_bytes": size, "body": doc,
		"count": func(path string) any { return float64(formula.Count(doc, path)) },
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
	kind, params, _ := mime.ParseMediaType(h.Get("Content-Type"))
	switch kind {
	case "multipart/form-data":
		doc, err = parseMultipart(body, params["boundary"])
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

// values returns the values of the route's {names} in the request's path.
func (m Method) values(r *http.Request) map[string]string {
	parts := partsOf(r.URL.EscapedPath())
	for _, at := range m.routes {
		if values, _, ok := at.match(parts); ok {
			return values
		}
	}
	return nil
}
