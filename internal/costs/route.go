package costs

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// AmbiguousError reports a request that the upstream could read as another call. It wraps
// quota.ErrUnpriced.
type AmbiguousError struct{ What string }

// Error returns what is ambiguous.
func (e *AmbiguousError) Error() string { return e.What }

// Unwrap returns quota.ErrUnpriced.
func (e *AmbiguousError) Unwrap() error { return quota.ErrUnpriced }

// VerbError reports a request whose path is priced, but not with its verb. It wraps
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
//   - The whole path must match, segment by segment, each unescaped. A path is ambiguous if it
//     has empty segments or dots that climb, or if unescaping it first gives another method.
//   - A literal segment takes precedence over a {template}. The verb decides between methods on one
//     path.
//   - A slash at the end of the path counts only where a route has it.
//   - A request that continues a resumable upload is a call of the method that Session names.
//   - POST with X-HTTP-Method-Override: GET is that GET, if the price list says that the upstream
//     accepts it.
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
	verb, byVerb := cmp.Or(r.Method, http.MethodGet), t.routesAt(at)
	if over := r.Header.Values(Override); len(over) > 0 {
		get := byVerb[http.MethodGet]
		if verb != http.MethodPost || !slices.Equal(over, []string{http.MethodGet}) ||
			get == "" || !slices.Contains(t.Override, get[strings.LastIndex(get, ".")+1:]) {
			return "", &AmbiguousError{"X-HTTP-Method-Override is not taken on " +
				words.Clip(verb+" "+at)}
		}
		verb = http.MethodGet
	}
	if id, ok := t.Session(r); ok {
		return id, nil
	}
	if id, ok := byVerb[verb]; ok {
		if other, ok := t.routesAt(r.URL.Path)[verb]; ok && other != id {
			return "", &AmbiguousError{"without the escapes in its path, such as %2F for /, it is a " +
				"call of " + other}
		}
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

// routesAt returns the methods of the narrowest routes that match an escaped path, by verb.
func (t *Table) routesAt(path string) map[string]string {
	best, byVerb := "", map[string]string{}
	parts := partsOf(path)
	for _, at := range t.routes {
		_, rank, ok := at.match(parts)
		longer := strings.HasPrefix(rank, best) // by the slash at the end
		switch {
		case !ok || rank != best && !longer && rank > best:
		case rank != best:
			best, byVerb = rank, map[string]string{at.verb: at.method}
		default:
			byVerb[at.verb] = at.method
		}
	}
	return byVerb
}

// partsOf returns the unescaped segments of a path.
func partsOf(path string) []string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, part := range parts {
		if plain, err := url.PathUnescape(part); err == nil {
			parts[i] = plain
		}
	}
	return parts
}

// match returns the values of the route's {names} in the segments of a path, and the route's rank,
// which has a digit for each segment. A narrower route has a lower rank.
func (at route) match(parts []string) (values map[string]string, rank string, ok bool) {
	const literal, ending, name, names = "0", "1", "2", "3"
	for i, word := range at.words {
		if i == len(parts) {
			return nil, "", false
		}
		if word == "" || word[0] != '{' {
			if word != parts[i] {
				return nil, "", false
			}
			rank += literal
			continue
		}
		if values == nil {
			values = map[string]string{}
		}
		key, end, _ := strings.Cut(word[1:], "}")
		value, ends := strings.CutSuffix(parts[i], end)
		many := strings.HasSuffix(key, "...")
		switch {
		case !ends || value == "" && len(parts) > 1:
			return nil, "", false
		case many:
			rest := strings.TrimSuffix(strings.Join(parts[i:], "/"), "/")
			values[strings.TrimSuffix(key, "...")] = rest
			return values, rank + names, true
		case end != "":
			rank += ending
		default:
			rank += name
		}
		values[key] = value
	}
	rest := parts[len(at.words):]
	return values, rank, len(rest) == 0 || len(rest) == 1 && rest[0] == ""
}

// nameForm matches the name in {name}, with the opening brace. Names do not distinguish routes.
var nameForm = regexp.MustCompile(`\{\w+`)

// Session reports whether a request continues a resumable upload, and returns the upload's method:
// the dearest one that uploads to the path. Such a request is a PUT, POST or DELETE below an upload
// path with an upload_id, whatever verb started the upload.
func (t *Table) Session(r *http.Request) (method string, ok bool) {
	verbs := []string{http.MethodPut, http.MethodPost, http.MethodDelete}
	path := r.URL.EscapedPath()
	below := func(prefix string) bool { return strings.HasPrefix(path, prefix+"/") }
	if !slices.Contains(verbs, r.Method) || r.URL.Query().Get("upload_id") == "" ||
		!slices.ContainsFunc(t.Uploads, below) {
		return "", false
	}
	byVerb := t.routesAt(path)
	for _, verb := range sorted(byVerb) {
		if other := byVerb[verb]; method == "" || t.units(other) > t.units(method) {
			method = other
		}
	}
	return method, method != ""
}

// Resumable reports whether a request begins a resumable upload.
func Resumable(r *http.Request) bool {
	query := r.URL.Query()
	return query.Has("uploadType") || query.Has("upload_protocol")
}

func (t *Table) units(id string) (sum int64) {
	for _, c := range t.methods[id].Costs {
		sum += c.Units
	}
	return sum
}

// route is a verb and the segments of a path.
type route struct {
	verb   string
	words  []string
	method string
}

// pathForm matches a path of words, {name} for one segment, {name}:word for a segment that ends in
// :word, and {name...} for the rest.
var (
	pathForm = regexp.MustCompile(`^(/[A-Za-z0-9_.:-]+|/\{[A-Za-z0-9_]+\}(:[A-Za-z0-9_.-]+)?)*` +
		`(/\{[A-Za-z0-9_]+\.\.\.\})?$`)
	verbs = [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
)

func checkRoute(text string) error {
	verb, path, _ := strings.Cut(text, " ")
	form := strings.TrimSuffix(path, "/")
	if !slices.Contains(verbs[:], verb) || form == "" || !pathForm.MatchString(form) {
		return fmt.Errorf("%q: write a verb and a path, such as GET /v1/things/{id}",
			words.Clip(text))
	}
	for part := range strings.SplitSeq(form[1:], "/") {
		if strings.Trim(part, ".") == "" {
			return fmt.Errorf("%q can never match: a part of dots is refused", words.Clip(text))
		}
	}
	return nil
}
