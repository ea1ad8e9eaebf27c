package costs

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"quotabudget/internal/quota"
)

// Method names the method that a request is a call of, by its verb and path; the host is not looked at. The rules:
//
//   - The whole path must match, segment by segment, after unescaping: no prefix, no trailing slash, no empty segment.
//   - A literal segment goes before a {template}; a verb of its own decides between methods on one path.
//   - What goes on with an upload is a call of the method that Session names.
//   - POST with X-HTTP-Method-Override is that verb, as it is for the upstream.
//
// A request that no route matches is quota.ErrUnpriced.
func (t *Table) Method(r *http.Request) (string, error) {
	verb := r.Method
	if verb == "" {
		verb = http.MethodGet
	}
	if over := r.Header.Get("X-HTTP-Method-Override"); verb == http.MethodPost && over != "" {
		verb = over
	}
	byVerb := t.routes.find(segments(r.URL))
	if id, ok := t.Session(r); ok && verb == r.Method {
		return id, nil
	}
	if id, ok := byVerb[verb]; ok {
		return id, nil
	}
	if len(byVerb) > 0 {
		return "", fmt.Errorf("%s %s (there it has %s): %w",
			clip(verb), clip(r.URL.Path), strings.Join(sorted(byVerb), ", "), quota.ErrUnpriced)
	}
	return "", fmt.Errorf("%s %s: %w", clip(verb), clip(r.URL.Path), quota.ErrUnpriced)
}

// segments are the unescaped parts of a path between its slashes; a slash that was escaped does not part them.
func segments(u *url.URL) []string {
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil {
			return nil
		}
		parts[i] = plain
	}
	return parts
}

// segment is one place in the tree of routes.
type segment struct {
	literal map[string]*segment
	any     *segment          // for a {name}
	byVerb  map[string]string // the methods that end here
}

// add puts a route into the tree. It returns the method that has the route already, or "".
func (s *segment) add(verb, path, method string) string {
	for part := range strings.SplitSeq(path[1:], "/") {
		s = s.child(part)
	}
	if other, ok := s.byVerb[verb]; ok {
		return other
	}
	if s.byVerb == nil {
		s.byVerb = map[string]string{}
	}
	s.byVerb[verb] = method
	return ""
}

func (s *segment) child(part string) *segment {
	if part[0] == '{' {
		if s.any == nil {
			s.any = &segment{}
		}
		return s.any
	}
	if s.literal == nil {
		s.literal = map[string]*segment{}
	}
	if s.literal[part] == nil {
		s.literal[part] = &segment{}
	}
	return s.literal[part]
}

// find is the methods at a path by their verbs: those of the literal segments, and of a template where those lead nowhere.
func (s *segment) find(parts []string) map[string]string {
	if len(parts) == 0 {
		return s.byVerb
	}
	if next := s.literal[parts[0]]; next != nil {
		if found := next.find(parts[1:]); found != nil {
			return found
		}
	}
	if s.any != nil && parts[0] != "" && parts[0] != "." && parts[0] != ".." {
		return s.any.find(parts[1:])
	}
	return nil
}
