package costs

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
)

// Method names the method that a request calls, by its verb and path, whatever its host. The rules:
//
//   - The whole path must match, segment by segment: no prefix, no empty segment. A letter that is
//     escaped has no price.
//   - A literal segment goes before a {template}; the verb decides between methods on one path.
//   - A path that servers may read in several ways, by a slash at its end or a space, is priced if
//     every route that it may match costs the same.
//   - A path that is another method's once its letters are small, or without .json, is ambiguous.
//   - A request that continues a resumable upload is a call of the method that Session names.
//   - POST with X-HTTP-Method-Override: GET is that GET, if the price list says that the upstream
//     takes it so.
//
// A request that no route matches is quota.ErrUnpriced; so are VerbError and AmbiguousError, which
// say more.
func (t *Table) Method(r *http.Request) (string, error) {
	words, err := wordsOf(r.URL)
	if err != nil {
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
	byVerb := t.routes.find(path)
	if overridden && !t.takesOverride(byVerb[verb]) {
		return "", ambiguous("X-HTTP-Method-Override is not taken on POST %s", spell.Clip(path))
	}
	if id, ok := t.Session(r); ok {
		return id, nil
	}
	if id, ok := byVerb[verb]; ok {
		if err := t.checkRoute(id, verb, path, words); err != nil {
			return "", err
		}
		return id, nil
	}
	if len(byVerb) > 0 {
		return "", &VerbError{Verb: verb, Path: path, Allowed: sorted(byVerb)}
	}
	return "", fmt.Errorf("%s %s: %w", spell.Clip(verb), spell.Clip(path), quota.ErrUnpriced)
}

// checkRoute refuses a path that servers may read as a method with another price.
func (t *Table) checkRoute(id, verb, path string, words []word) error {
	// servers may accept /GraphQL and /graphql.json for it
	plain := strings.TrimSuffix(strings.ToLower(path), ".json")
	if other := t.routes.find(plain)[verb]; plain != path && other != "" && other != id {
		return ambiguous("its path may be taken for %s, which is %s", spell.Clip(plain), other)
	}
	if !slices.ContainsFunc(words, func(w word) bool { return w.form != definite }) {
		return nil
	}
	var err error
	t.routes.each(words, func(s *segment) {
		other := s.byVerb[verb]
		if other != "" && other != id && !t.costSame(id, other) {
			err = ambiguous("its path may be taken for %s or %s: write ids as letters, digits, - "+
				"and _, without a slash at the end", id, other)
		}
	})
	return err
}

// costSame reports whether calls of two methods take the same units from the same buckets.
func (t *Table) costSame(id, other string) bool {
	a, b := t.methods[id], t.methods[other]
	byMethod := func(c quota.Cost) bool {
		return slices.Contains(t.bucketNamed(c.Bucket).Split, methodFact)
	}
	return a.Known() && b.Known() && slices.Equal(a.Costs, b.Costs) &&
		!slices.ContainsFunc(a.Costs, byMethod)
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

// find returns the methods at a path by their verbs: those of the literal segments, and of the
// templates where those lead nowhere, the narrower ones first. A slash at the end of the path
// counts only where a route has it.
func (s *segment) find(path string) map[string]string {
	return s.findParts(strings.Split(strings.TrimPrefix(path, "/"), "/"))
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

// each visits all routes that a path may match, in any way that servers may read it. It returns
// whether one of them always matches.
func (s *segment) each(words []word, visit func(*segment)) bool {
	if len(words) == 0 {
		visit(s)
		return s.byVerb != nil
	}
	certain := false
	switch w, rest := words[0], words[1:]; w.form {
	case definite:
		for _, next := range []*segment{s.literal[w.text], s.ending(w.text), s.any} {
			if next != nil && next.each(rest, visit) {
				return true
			}
		}
	case empty:
		if end := s.literal[""]; end != nil {
			visit(end)
			return true
		}
		visit(s)
		if s.any != nil {
			visit(s.any)
		}
	case unclear:
		for _, next := range s.below() {
			certain = next.each(rest, visit) && next == s.any || certain
		}
	case splits:
		s.all(visit)
	}
	if !certain && s.rest != nil {
		visit(s.rest)
		return true
	}
	return certain
}

// below returns the segments that one more word may lead to.
func (s *segment) below() []*segment {
	next := slices.Concat(slices.Collect(maps.Values(s.literal)),
		slices.Collect(maps.Values(s.endings)))
	if s.any != nil {
		next = append(next, s.any)
	}
	return next
}

// all visits the segment and everything below it.
func (s *segment) all(visit func(*segment)) {
	visit(s)
	for _, next := range s.below() {
		next.all(visit)
	}
	if s.rest != nil {
		visit(s.rest)
	}
}

// ending returns the node for a segment that matches {name}:word, or nil. An escaped colon is
// ambiguous and matches none.
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
