package costs

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// AmbiguousError reports a request that the upstream could read as another call. It is a
// quota.ErrUnpriced.
type AmbiguousError struct{ What string }

// Error returns what is ambiguous.
func (e *AmbiguousError) Error() string { return e.What }

// Unwrap returns quota.ErrUnpriced.
func (e *AmbiguousError) Unwrap() error { return quota.ErrUnpriced }

// VerbError reports a request whose path is priced, but not with its verb. It is a
// quota.ErrUnpriced.
type VerbError struct {
	Verb, Path string
	Allowed    []string
}

// Error returns the verbs of the path.
func (e *VerbError) Error() string {
	return fmt.Sprintf("%s has no %s: it has %s", words.Clip(e.Path), words.Clip(e.Verb),
		strings.Join(e.Allowed, ", "))
}

// Unwrap returns quota.ErrUnpriced.
func (e *VerbError) Unwrap() error { return quota.ErrUnpriced }

// Override is the header that makes a POST a GET.
const Override = "X-Http-Method-Override"

// Method returns the method that a request calls, by its verb and path. It ignores the host. The
// rules:
//
//   - The whole path must match, segment by segment, each unescaped. A path with empty segments, or
//     with dots that climb, is ambiguous.
//   - A literal segment goes before a {template}; the verb decides between methods on one path.
//   - A slash at the end of the path counts only where a route has it.
//   - A request that continues a resumable upload is a call of the method that Session names.
//   - POST with X-HTTP-Method-Override: GET is that GET, if the price list says that the upstream
//     takes it so.
//
// A request that no route matches is a quota.ErrUnpriced, perhaps as a VerbError or AmbiguousError.
func (t *Table) Method(r *http.Request) (string, error) {
	at := r.URL.EscapedPath()
	switch plain := strings.TrimSuffix(r.URL.Path, "/"); {
	case plain != "" && path.Clean(plain) != plain:
		return "", &AmbiguousError{"its path has an empty part, //, or a part of dots"}
	case CheckQuery(r.URL.RawQuery) != nil:
		return "", CheckQuery(r.URL.RawQuery)
	}
	verb, byVerb := cmp.Or(r.Method, http.MethodGet), t.routes.find(at)
	if over := r.Header.Values(Override); len(over) > 0 {
		if verb != http.MethodPost || !slices.Equal(over, []string{http.MethodGet}) ||
			!t.takesOverride(byVerb[http.MethodGet]) {
			return "", &AmbiguousError{"X-HTTP-Method-Override is not taken on " +
				words.Clip(verb+" "+at)}
		}
		verb = http.MethodGet
	}
	if id, ok := t.Session(r); ok {
		return id, nil
	}
	if id, ok := byVerb[verb]; ok {
		return id, nil
	}
	if len(byVerb) > 0 {
		return "", &VerbError{Verb: verb, Path: at, Allowed: sorted(byVerb)}
	}
	return "", fmt.Errorf("%s %s: %w", words.Clip(verb), words.Clip(at), quota.ErrUnpriced)
}

// CheckQuery refuses a query or form that servers read in different ways. Its error contains no
// value.
func CheckQuery(raw string) error {
	if _, err := url.ParseQuery(raw); err != nil {
		return &AmbiguousError{"its query is unclear: write %25 for % and %3B for ;"}
	}
	return nil
}

// takesOverride reports whether the upstream also accepts a call of the method as POST, by the last
// word of the method's ID.
func (t *Table) takesOverride(id string) bool {
	return id != "" && slices.Contains(t.overrides, id[strings.LastIndex(id, ".")+1:])
}

// segment is one place in the tree of routes.
type segment struct {
	literal map[string]*segment
	endings map[string]*segment // for {name}:word, by the word
	any     *segment            // for {name}
	rest    *segment            // for {name...}
	byVerb  map[string]string   // methods of the routes that end here
}

// add adds a route to the tree. It returns the method that already has the route, or "".
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
	name, ending, _ := strings.Cut(part, "}")
	switch {
	case part == "" || part[0] != '{':
		return step(&s.literal, part)
	case ending != "":
		return step(&s.endings, ending)
	case strings.HasSuffix(name, "..."):
		if s.rest == nil {
			s.rest = &segment{}
		}
		return s.rest
	case s.any == nil:
		s.any = &segment{}
	}
	return s.any
}

func step(steps *map[string]*segment, word string) *segment {
	if *steps == nil {
		*steps = map[string]*segment{}
	}
	if (*steps)[word] == nil {
		(*steps)[word] = &segment{}
	}
	return (*steps)[word]
}

// find returns the methods at an escaped path, by verb. Literal segments come first, then the
// templates, the narrowest first.
func (s *segment) find(path string) map[string]string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, part := range parts {
		if plain, err := url.PathUnescape(part); err == nil {
			parts[i] = plain
		}
	}
	return s.findParts(parts)
}

func (s *segment) findParts(parts []string) map[string]string {
	ends := len(parts) == 1 && parts[0] == "" && s.literal[""] == nil && s.byVerb != nil
	if len(parts) == 0 || ends {
		return s.byVerb
	}
	next := []*segment{s.literal[parts[0]], s.ending(parts[0]), s.any}
	for _, next := range next {
		if next == nil {
			continue
		}
		if found := next.findParts(parts[1:]); found != nil {
			return found
		}
	}
	if s.rest != nil {
		return s.rest.byVerb
	}
	return nil
}

// ending returns the node for a segment that matches {name}:word, or nil.
func (s *segment) ending(part string) *segment {
	colon := strings.LastIndexByte(part, ':')
	if colon < 1 {
		return nil
	}
	return s.endings[part[colon:]]
}

// values returns the values of a route's {names} in a path.
func (at route) values(path string) map[string]string {
	values := map[string]string{}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, word := range strings.Split(strings.Trim(at.path, "/"), "/") {
		if i >= len(parts) {
			return nil
		}
		name, ending, template := strings.Cut(strings.TrimPrefix(word, "{"), "}")
		part, ends := strings.CutSuffix(parts[i], ending)
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
		switch {
		case word[0] != '{' && word != parts[i], !ends:
			return nil
		case strings.HasSuffix(name, "..."):
			values[strings.TrimSuffix(name, "...")] = strings.Join(parts[i:], "/")
			return values
		case template:
			values[name] = part
		}
	}
	return values
}
