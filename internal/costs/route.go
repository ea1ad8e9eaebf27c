package costs

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
)

// Method names the method that a request calls, by its verb and path, whatever its host. The rules:
//
//   - The whole path must match, segment by segment: no prefix, no trailing slash, no empty
//     segment. A letter that is escaped has no price.
//   - A literal segment goes before a {template}; the verb decides between methods on one path.
//   - A path that is another method's once its letters are small, or without .json, is ambiguous.
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
		// servers may take /GraphQL and /graphql.json for it
		plain := strings.TrimSuffix(strings.ToLower(path), ".json")
		other := t.routes.find(strings.Split(strings.TrimPrefix(plain, "/"), "/"))[verb]
		if plain != path && other != "" && other != id {
			return "", ambiguous("its path may be taken for %s, which is %s",
				spell.Clip(plain), other)
		}
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
	endings map[string]*segment // for {name}:word, by the word
	any     *segment            // for {name}
	rest    *segment            // for {name...}
	byVerb  map[string]string   // the methods that end here
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
	name, ending, _ := strings.Cut(part, "}")
	switch {
	case part[0] != '{':
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

// find is the methods at a path by their verbs: those of the literal segments, and of the templates
// where those lead nowhere, the narrower ones first.
func (s *segment) find(parts []string) map[string]string {
	if len(parts) == 0 {
		return s.byVerb
	}
	next := []*segment{s.literal[parts[0]], s.ending(parts[0]), s.any}
	for _, next := range next {
		if next == nil {
			continue
		}
		if found := next.find(parts[1:]); found != nil {
			return found
		}
	}
	if s.rest != nil {
		return s.rest.byVerb
	}
	return nil
}

// ending is where a segment leads whose end is that of a {name}:word. A colon that is escaped may
// be read as one, or not: it leads nowhere.
func (s *segment) ending(part string) *segment {
	colon := strings.LastIndexByte(part, ':')
	if colon < 1 {
		return nil
	}
	return s.endings[part[colon:]]
}

// values are what the {names} of a route stand for in a path.
func (at route) values(path string) map[string]string {
	values := map[string]string{}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, word := range strings.Split(at.path[1:], "/") {
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
