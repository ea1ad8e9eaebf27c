package costs

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
)

// Method names the method that a request calls, by its verb and path, whatever its host. The rules:
//
//   - The whole path must match, segment by segment: no prefix, no trailing slash, no empty
//     segment. Literal segments are compared as they were sent: an escaped letter matches none.
//   - A literal segment goes before a {template}; the verb decides between methods on one path.
//   - A request that continues a resumable upload is a call of the method that Session names.
//   - POST with X-HTTP-Method-Override: GET is that GET, if the price list says that the upstream
//     takes it so.
//
// A request that no route matches is quota.ErrUnpriced; so are VerbError and AmbiguousError, which
// say more.
func (t *Table) Method(r *http.Request) (string, error) {
	if err := checkPath(r.URL); err != nil {
		return "", err
	}
	if err := CheckQuery(r.URL.RawQuery); err != nil {
		return "", err
	}
	verb, overridden, err := verbOf(r)
	if err != nil {
		return "", err
	}
	path := r.URL.EscapedPath()
	byVerb := t.routes.find(strings.Split(strings.TrimPrefix(path, "/"), "/"))
	if overridden && !t.takesOverride(byVerb[verb]) {
		return "", ambiguous("X-HTTP-Method-Override is not taken on POST %s", spell.Clip(path))
	}
	if id, ok := t.Session(r); ok {
		return id, nil
	}
	if id, ok := byVerb[verb]; ok {
		return id, nil
	}
	if len(byVerb) > 0 {
		return "", &VerbError{Verb: verb, Path: path, Allowed: sorted(byVerb)}
	}
	return "", fmt.Errorf("%s %s: %w", spell.Clip(verb), spell.Clip(path), quota.ErrUnpriced)
}

// takesOverride reports whether the upstream takes a call of the method as POST, too. The price
// list goes by the last word of the method's ID.
func (t *Table) takesOverride(id string) bool {
	return id != "" && slices.Contains(t.overrides, id[strings.LastIndex(id, ".")+1:])
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

// find is the methods at a path by their verbs: those of the literal segments, and of a template
// where those lead nowhere.
func (s *segment) find(parts []string) map[string]string {
	if len(parts) == 0 {
		return s.byVerb
	}
	if next := s.literal[parts[0]]; next != nil {
		if found := next.find(parts[1:]); found != nil {
			return found
		}
	}
	if s.any != nil {
		return s.any.find(parts[1:])
	}
	return nil
}
