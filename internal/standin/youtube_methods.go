package standin

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// method is a priced operation of the API.
type method struct {
	id, verb, bucket string
	units            int64
	route            *regexp.Regexp
}

var methods = sync.OnceValue(func() []method {
	var all []method
	for _, f := range specs()[youTubeName].Methods {
		units, _ := strconv.ParseInt(f[4], 10, 64)
		all = append(all, method{f[0], f[1], f[3], units, compile(f[1] + " " + f[2])})
	}
	return all
})

// methodOf returns the method that a request calls, or the zero method. Media uploads use the paths
// of their methods.
func methodOf(r *http.Request) method {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/resumable"), "/upload")
	for _, m := range methods() {
		if m.route.MatchString(r.Method + " " + path) {
			return m
		}
	}
	return method{}
}

// emptyAnswer returns the response of a method that is priced but not served: no content, a bare
// resource, or an empty list.
func (m method) emptyAnswer() any {
	resource := strings.TrimSuffix(strings.Split(m.id, ".")[1], "s")
	switch m.verb {
	case http.MethodDelete:
		return nil
	case http.MethodGet:
		return newList(resource+"List", nil)
	}
	return object{"kind": "youtube#" + resource, "etag": etagOf(m.id), "id": "standin"}
}

// maxForm bounds the parameters read from a body, in bytes.
const maxForm = 1 << 20

// overridden converts a POST with X-HTTP-Method-Override: GET, which clients send when a URL gets
// too long, into that GET. The form's parameters join those of the URL.
func overridden(r *http.Request) (*http.Request, error) {
	if r.Method != http.MethodPost || r.Header.Get("X-Http-Method-Override") != http.MethodGet {
		return r, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxForm))
	if err != nil {
		return nil, fmt.Errorf("form: %w", err)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("form: %w", err)
	}
	get := r.Clone(r.Context())
	get.Method = http.MethodGet
	get.URL.RawQuery = strings.Trim(get.URL.RawQuery+"&"+form.Encode(), "&")
	return get, nil
}

// credentialProblem returns the error of a request that may not call the method, or "". A request
// may have an API key, a user's token, or both; each must be valid.
func (s *YouTube) credentialProblem(r *http.Request, m method) string {
	key, token := s.engine.api.key(r), bearer(r)
	switch {
	case token != "" && len(s.Tokens) > 0 && !slices.Contains(s.Tokens, token):
		return "authError"
	case token == "" && len(s.Tokens) > 0 && m.verb != http.MethodGet:
		return "required"
	case key == "" && token == "":
		return "forbidden no key"
	case key != "" && len(s.Keys) > 0 && !slices.Contains(s.Keys, key):
		return "badRequest key"
	}
	return ""
}
