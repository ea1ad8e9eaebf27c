package costs

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
)

// AmbiguousError is a request that the upstream could take for another call than we do. It has no
// price (quota.ErrUnpriced): a guess at what it is would be a way to pay for the cheaper of the
// two.
type AmbiguousError struct{ What string }

// Error says what is ambiguous.
func (e *AmbiguousError) Error() string { return e.What }

// Unwrap is quota.ErrUnpriced.
func (e *AmbiguousError) Unwrap() error { return quota.ErrUnpriced }

func ambiguous(format string, args ...any) error {
	return &AmbiguousError{fmt.Sprintf(format, args...)}
}

// VerbError is a request whose path is priced, but not with its verb. It is quota.ErrUnpriced.
type VerbError struct {
	Verb, Path string
	Allowed    []string
}

// Error names the verbs that the path has.
func (e *VerbError) Error() string {
	return fmt.Sprintf("%s has no %s: it has %s", spell.Clip(e.Path), spell.Clip(e.Verb),
		strings.Join(e.Allowed, ", "))
}

// Unwrap is quota.ErrUnpriced.
func (e *VerbError) Unwrap() error { return quota.ErrUnpriced }

// plainSegment reports whether a text may stand between two slashes, once unescaped.
func plainSegment(text string) bool {
	for _, c := range []byte(text) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("_.~=+:@,!*'()$-", c) >= 0) {
			return false
		}
	}
	return text != ""
}

// needless matches a letter or a digit that is escaped. Servers take it for the letter; a route
// that has the letter would not match, and a wider and cheaper one might.
var needless = regexp.MustCompile(`(?i)%(3\d|[46][1-9a-f]|[57][0-9a])`)

// word is a path segment, with the ways in which servers may read it.
type word struct {
	text string // in escaped form
	form wordForms
}

type wordForms int

const (
	definite wordForms = iota // read in one way only
	unclear                   // may be read as another segment: a space, a bracket, non-ASCII letters
	splits                    // may be read as several segments or the end: an escaped / or ?
	empty                     // may be ignored: a slash at the end of the path
)

// twice matches text that is still escaped after decoding.
var twice = regexp.MustCompile(`(?i)%[0-9a-f]{2}`)

// wordsOf reads a path. It refuses one that could lead anywhere: dots that climb, doubled slashes,
// letters that are escaped or escaped twice, parameters behind a semicolon, control characters.
func wordsOf(u *url.URL) (words []word, err error) {
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		steps := strings.FieldsFunc(plain, func(c rune) bool { return c == '/' || c == '\\' })
		dots := func(step string) bool { return strings.Trim(step, ".") == "" }
		form := definite
		switch {
		case part == "" && i == len(parts)-1:
			form = empty
		case part == "":
			return nil, ambiguous("its path has an empty part, //")
		case err != nil || !utf8.ValidString(plain) || strings.ContainsFunc(plain, unicode.IsControl) ||
			strings.Contains(plain, ";") || twice.MatchString(plain):
			return nil, ambiguous("its path holds a character that may be read in two ways: write " +
				"ids as letters, digits, - and _")
		case needless.MatchString(part):
			return nil, ambiguous("its path has a letter or a digit that is escaped: write it as " +
				"it is")
		case slices.ContainsFunc(steps, dots):
			return nil, ambiguous("its path has a part of dots")
		case strings.ContainsAny(plain, `/\?#`):
			form = splits
		case !plainSegment(plain):
			form = unclear
		}
		words = append(words, word{part, form})
	}
	return words, nil
}

// otherName matches the names of headers and parameters that make some servers take a request for
// another one: X-HTTP-Method, _method, $httpMethod, $httpHeaders, $ct (a Content-Type),
// X-Original-URL.
var otherName = regexp.MustCompile(`(?i)http[-_]?method|http[-_]?headers|method[-_]?override|` +
	`^_?method$|^\$ct$|^x[-_](original|rewrite)[-_]ur[li]$`)

// otherWords are such that each name which otherName matches has one of them.
var otherWords = [...]string{"method", "headers", "$ct", "original", "rewrite"}

// isOther reports whether a header or a parameter of that name may turn the request into another.
func isOther(name string) bool {
	name = strings.ToLower(name)
	for _, word := range otherWords { // few names have any, and the pattern takes long
		if strings.Contains(name, word) {
			return otherName.MatchString(name)
		}
	}
	return false
}

// CheckQuery refuses a query, or a form, that servers read in different ways, or that may turn the
// request into another one. It repeats no value.
func CheckQuery(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil || strings.Contains(raw, "#") {
		return ambiguous("its query is unclear: write %%25 for %%, %%3B for ; and %%23 for #")
	}
	for name := range query {
		if isOther(name) {
			return ambiguous("its parameter %q may turn it into another request", spell.Clip(name))
		}
		for _, c := range []byte(name) {
			if c <= ' ' || c >= 0x7f {
				return ambiguous("its query has a parameter whose name is not plain text")
			}
		}
	}
	return nil
}

// Override is the header by which a POST is read as a GET.
const Override = "X-Http-Method-Override"

// single are headers that say how to read a request, or who it is from: servers take one of
// several.
var single = []string{"Authorization", "Content-Encoding", "Content-Type"}

// verbOf is the verb that the upstream goes by, and whether the header said so.
func verbOf(r *http.Request) (verb string, overridden bool, err error) {
	verb = cmp.Or(r.Method, http.MethodGet)
	var over []string
	for name, values := range r.Header {
		known := http.CanonicalHeaderKey(name)
		switch {
		case known == Override:
			over = append(over, values...)
		case isOther(name):
			err := ambiguous("its header %s may turn it into another request", spell.Clip(name))
			return "", false, err
		case len(values) > 1 && slices.Contains(single, known):
			return "", false, ambiguous("its header %s comes twice", known)
		}
	}
	switch {
	case len(over) == 0:
		return verb, false, nil
	case len(over) > 1 || verb != http.MethodPost || over[0] != http.MethodGet:
		return "", false, ambiguous("X-HTTP-Method-Override is accepted once, as GET on a POST")
	}
	return http.MethodGet, true, nil
}
